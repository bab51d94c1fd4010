package service_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
)

// heldTargets is a store whose second reading of the targets, that of the loop that sends, is held back once it has read.
type heldTargets struct {
	service.Store
	reads atomic.Int64
	hold  func()
}

func (s *heldTargets) Targets(ctx context.Context) ([]domain.Target, error) {
	all, err := s.Store.Targets(ctx)
	if s.reads.Add(1) == 2 {
		s.hold()
	}
	return all, err
}

// TestATargetThatIsAddedDuringASlowReadingIsTold: what was read earlier does not replace what was read later.
func TestATargetThatIsAddedDuringASlowReadingIsTold(t *testing.T) {
	g := &told{postbox: &postbox{}, t: t, dir: t.TempDir()}
	reading, added := make(chan struct{}), make(chan struct{})
	g.wrap = func(s service.Store) service.Store {
		return &heldTargets{Store: s, hold: func() {
			close(reading)
			select {
			case <-added: // it did not wait for this reading
			case <-time.After(100 * time.Millisecond):
			}
		}}
	}
	g.start()
	t.Cleanup(func() { g.stop() })
	<-reading
	g.add("one", blockedOnly)
	close(added)
	titles := g.happens("alpha", domain.StoryBlocked, 1)
	for end := time.Now().Add(20 * time.Second); len(g.posts()) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the target was told nothing")
		}
	}
	want(t, "a target that was added meanwhile", g.take("one"), titles...)
}
