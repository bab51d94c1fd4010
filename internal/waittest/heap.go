package waittest

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// HeapGrowth returns by how many bytes the heap grew at most while run ran, with little garbage among them.
func HeapGrowth(run func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	runtime.GC()
	before, most := heap(), int64(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		run()
	}()
	for sample := time.NewTicker(time.Millisecond); ; {
		select {
		case <-sample.C:
			most = max(most, heap()-before)
		case <-done:
			sample.Stop()
			return most
		}
	}
}

func heap() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
