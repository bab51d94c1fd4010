package store_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/yard"
)

func BenchmarkRedeem(b *testing.B) {
	db := openStore(b)
	ctx := context.Background()
	now := time.Now().UnixMilli()
	for i := range b.N {
		if err := db.AddToken(ctx, yard.JoinToken{Hash: fmt.Sprintf("%064d", i), CreatedAtMS: now, ExpiresAtMS: now + 3_600_000}); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	var n atomic.Int64
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := n.Add(1) - 1
			agent := yard.AgentRecord{ID: fmt.Sprintf("%016d", i), Label: "bench", SecretHash: fmt.Sprintf("%064d", i), State: yard.AgentIdle, JoinedAtMS: now}
			if err := db.Redeem(fmt.Sprintf("%064d", i), agent); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "redemptions/s")
}

// BenchmarkSaveBeats1000 is one write-behind of 1,000 agents.
func BenchmarkSaveBeats1000(b *testing.B) {
	db := openStore(b)
	ctx := context.Background()
	now := time.Now().UnixMilli()
	beats := make([]yard.AgentBeat, 1000)
	for i := range beats {
		hash, id := fmt.Sprintf("%064d", i), fmt.Sprintf("%016d", i)
		if err := db.AddToken(ctx, yard.JoinToken{Hash: hash, CreatedAtMS: now, ExpiresAtMS: now + 3_600_000}); err != nil {
			b.Fatal(err)
		}
		if err := db.Redeem(hash, yard.AgentRecord{ID: id, Label: "bench", SecretHash: hash, State: yard.AgentIdle, JoinedAtMS: now}); err != nil {
			b.Fatal(err)
		}
		beats[i] = yard.AgentBeat{ID: id, State: yard.AgentRunning, Detail: "building", StateSinceMS: now, LastSeenMS: now}
	}
	for b.Loop() {
		for i := range beats {
			beats[i].LastSeenMS++
		}
		if err := db.SaveBeats(ctx, beats); err != nil {
			b.Fatal(err)
		}
	}
}
