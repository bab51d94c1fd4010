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

// BenchmarkRecordAndRead records an event and reads it for the first time, which builds the array.
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

// BenchmarkWaiters records an event for which 1,000 readers wait, each of whom gets what is new to it.
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
