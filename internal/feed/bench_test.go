package feed_test

import (
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
