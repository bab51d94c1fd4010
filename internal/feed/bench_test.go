package feed_test

import (
	"sync"
	"testing"
	"time"

	"switchyard/internal/feed"
)

func full() *feed.Ring {
	ring := feed.New(time.Now)
	for i := range feed.Capacity {
		ring.Record(move(i))
	}
	return ring
}

func BenchmarkRecord(b *testing.B) {
	ring := full()
	b.ReportAllocs()
	for b.Loop() {
		ring.Record(move(7))
	}
}

// BenchmarkRecordAndRead is an event and the first request that reads it, which builds the array.
func BenchmarkRecordAndRead(b *testing.B) {
	ring := full()
	b.ReportAllocs()
	for b.Loop() {
		ring.Record(move(7))
		ring.Snapshot().After(0)
	}
}

func BenchmarkAfter(b *testing.B) {
	snapshot := full().Snapshot()
	since := events(b, snapshot, 0)[250].TimestampMS
	b.ReportAllocs()
	for b.Loop() {
		snapshot.After(since)
	}
}

// BenchmarkWaiters is an event that 1,000 waiting readers get, each what is new to it.
func BenchmarkWaiters(b *testing.B) {
	const waiters = 1000
	ring := full()
	var waiting, served sync.WaitGroup
	for b.Loop() {
		waiting.Add(waiters)
		for range waiters {
			served.Go(func() {
				snapshot := ring.Snapshot()
				waiting.Done()
				<-snapshot.Replaced()
				ring.Snapshot().After(0)
			})
		}
		waiting.Wait()
		ring.Record(move(7))
		served.Wait()
	}
}
