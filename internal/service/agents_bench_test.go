package service_test

import (
	"sync"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/storetest"
)

// callers is how many agents join at once: they wait for the disk, which commits them together.
const callers = 16

// BenchmarkRedemption measures an agent that joins while others do so as well.
func BenchmarkRedemption(b *testing.B) {
	g := openGateway(b, storetest.Dir(b))
	defer g.store.Close()
	tokens := make(chan domain.Secret, b.N)
	for range b.N {
		token, _, err := g.Agents.CreateJoinToken(b.Context(), "")
		if err != nil {
			b.Fatal(err)
		}
		tokens <- token
	}
	close(tokens)
	b.ResetTimer()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for token := range tokens {
				if _, _, err := g.Agents.Join(b.Context(), token, nil, ""); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkWriteBehind measures storing a second of heartbeats of 1,000 agents.
func BenchmarkWriteBehind(b *testing.B) {
	g := openGateway(b, storetest.Dir(b))
	defer g.store.Close()
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = g.join("builder").ID
	}
	running, detail := domain.AgentRunning, "compiling"
	for b.Loop() {
		b.StopTimer()
		for _, id := range ids {
			g.beat(id, service.Heartbeat{State: &running, Detail: &detail})
		}
		b.StartTimer()
		if err := service.SaveBeats(b.Context(), g.Service); err != nil {
			b.Fatal(err)
		}
	}
}
