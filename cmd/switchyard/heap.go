package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// The sizes, in bytes, to which a heap may grow before it is collected, however little of it is in use. A gateway
// with few projects uses 2 to 5 MiB, a project server less; by Go's defaults these are collected sixty times a second
// under load, which takes a fifth of the CPU time of small answers (make bench, "small JSON").
const (
	gatewayHeapFloor = 9 << 20
	projectHeapFloor = 16 << 20
)

// largeHeap is the size in use, in bytes, from which a heap is collected when it has grown by half: a gateway with a thousand
// projects, of which 19 MiB are in use, would else take 92 MiB of memory instead of 82 (make bench, "memory, idle").
const largeHeap = 12 << 20

// keepHeapFloor sets floor for the garbage collector from now on. Larger heaps are collected as usual, when they have
// doubled, and large ones earlier. Whoever sets GOGC has decided otherwise.
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
	type mark struct{ _ *mark } // garbage at once, so that the next collection finds it
	runtime.AddCleanup(&mark{}, keepHeapFloor, floor)
}
