package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// The sizes, in bytes, that a heap reaches before it is collected, however little of it is in use. A gateway with few
// projects uses 2 to 5 MiB, a project server less. With Go's defaults these would be collected sixty times a second
// under load, which takes a fifth of the CPU time of small responses (make bench, "small JSON").
const (
	gatewayHeapFloor = 9 << 20
	projectHeapFloor = 16 << 20
)

// largeHeap is the live size, in bytes, from which a heap is collected whenever it has grown by half. Otherwise a gateway with a
// thousand projects, whose live heap is 19 MiB, would take 92 MiB of memory instead of 82 (make bench, "memory, idle").
const largeHeap = 12 << 20

// keepHeapFloor keeps heaps below floor from being collected. Larger heaps are collected when they have doubled, as usual,
// and those over largeHeap when they have grown by half. It does nothing when GOGC is set.
func keepHeapFloor(floor int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := floor * 100 / (4 << 20) // no heap is collected below 4 MiB times this percentage
	if used := int(live[0].Value.Uint64()); used > 0 {
		percent = min(percent, max(100, floor*100/used-100))
		if used > largeHeap {
			percent = 50
		}
	}
	debug.SetGCPercent(percent)
	type mark struct{ _ *mark } // unreachable at once, so that the next collection finalizes it
	runtime.AddCleanup(&mark{}, keepHeapFloor, floor)
}
