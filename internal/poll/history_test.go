package poll_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
)

// past is what a server knows from git, and what the gateway has merged of it.
type past struct {
	mu         sync.Mutex
	id         string
	moves      int
	incomplete bool
	err        error
	early      bool                        // the gateway does not know the board yet
	change     func(*upstream.HistoryPart) // of each answer
	asked      int                         // how many requests there were, and how many moves they answered
	sent       int
	merged     []string // "id: moves"
}

func (p *past) Last(context.Context, domain.Project) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.early {
		return "", domain.Errorf(domain.Unavailable, "too early")
	}
	if len(p.merged) == 0 {
		return "", nil
	}
	id, _, _ := strings.Cut(p.merged[len(p.merged)-1], ":")
	return id, nil
}

func (p *past) Merge(_ context.Context, _ int64, project domain.Project, id string, moves []domain.Move) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.merged = append(p.merged, fmt.Sprintf("%s: %d", id, len(moves)))
	return nil
}

func (p *past) answer(ctx context.Context, after int64, limit int) (upstream.HistoryPart, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	part := upstream.HistoryPart{ID: p.id, Complete: !p.incomplete, Next: min(after+int64(limit), max(after, int64(p.moves)))}
	part.Moves = make([]domain.Move, part.Next-after)
	if p.change != nil {
		p.change(&part)
	}
	p.sent += len(part.Moves)
	if p.err != nil {
		return upstream.HistoryPart{}, p.err
	}
	return part, ctx.Err()
}

func (p *past) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *past) want(t *testing.T, merged ...string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if fmt.Sprint(p.merged) != fmt.Sprint(merged) {
		t.Errorf("merged %v, want %v", p.merged, merged)
	}
}

// remembering follows a server whose history is h.
func remembering(t *testing.T, h *past, test func(y *site)) {
	a := newServer("i", 10)
	a.past = h.answer
	following(t, a, func(y *site) {
		y.stop()
		y.histories = h
		y.start()
		test(y)
	})
}

func TestAHistoryIsReadOnceForEachID(t *testing.T) {
	h := &past{id: "one", moves: 2500}
	remembering(t, h, func(y *site) {
		y.pass(time.Second)
		h.want(t, "one: 2500")
		y.pass(10 * time.Minute)
		y.stop()
		y.start() // a new process
		y.pass(10 * time.Minute)
		h.want(t, "one: 2500")
		if h.asked > 5+2*60 || h.sent > 2500+2*60 {
			t.Errorf("%d requests, %d moves", h.asked, h.sent)
		}
		h.set(func() { h.id, h.moves = "two", 3 })
		y.pass(time.Minute)
		h.want(t, "one: 2500", "two: 3")
		h.set(func() { h.id, h.moves = "three", 0 })
		y.pass(time.Minute)
		h.want(t, "one: 2500", "two: 3", "three: 0")
	})
}

func TestAHistoryWithoutMovesTakesOneRequest(t *testing.T) {
	h := &past{id: "one"}
	remembering(t, h, func(y *site) {
		y.pass(time.Second)
		h.want(t, "one: 0")
		if h.asked != 1 {
			t.Errorf("%d requests", h.asked)
		}
	})
}

func TestAHistoryIsReadOnceItIsCompleteAndTheBoardIsKnown(t *testing.T) {
	h := &past{id: "one", moves: 3, incomplete: true, early: true}
	remembering(t, h, func(y *site) {
		y.pass(2 * time.Second)
		h.set(func() { h.incomplete = false })
		y.pass(5 * time.Second)
		h.want(t)
		h.set(func() { h.early = false })
		y.pass(10 * time.Second)
		h.want(t, "one: 3")
	})
}

// TestNoHistoryCostsMuch whatever a server answers.
func TestNoHistoryCostsMuch(t *testing.T) {
	n := 0
	for name, c := range map[string]struct {
		change          func(*past)
		requests, moves int // at most in an hour
	}{
		"never complete":             {func(h *past) { h.incomplete = true }, 100, 100},
		"fails":                      {func(h *past) { h.err = errors.New("connection refused") }, 20, 20},
		"has none":                   {func(h *past) { h.err = domain.Errorf(domain.NotFound, "none") }, 10, 10},
		"another id at each time":    {func(h *past) { h.change = func(p *upstream.HistoryPart) { n++; p.ID = fmt.Sprint(n) } }, 200, 100_000},
		"never known to the gateway": {func(h *past) { h.early = true }, 0, 0},
		"without end": {func(h *past) {
			h.change = func(p *upstream.HistoryPart) { p.Moves = make([]domain.Move, 1000); time.Sleep(10 * time.Millisecond) }
			h.moves = 1 << 40
		}, 2000, 2_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			h := &past{id: "one", moves: 2500}
			c.change(h)
			remembering(t, h, func(y *site) {
				y.pass(time.Hour)
				h.set(func() {
					if len(h.merged) > 0 || h.asked > c.requests || h.sent > c.moves {
						t.Errorf("%d requests, %d moves, merged %v", h.asked, h.sent, h.merged)
					}
				})
			})
		})
	}
}
