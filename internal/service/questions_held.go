package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// holdLease is how long a question counts as held after a gateway says so, in case the gateway dies.
const holdLease = 20 * time.Second

// heldQuestions are the questions that connections of this gateway wait for.
type heldQuestions struct {
	began time.Time // none was held here before; set once

	mu    sync.Mutex
	count map[int64]int
}

func (h *heldQuestions) add(id int64, n int) (left int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == nil {
		h.count = map[int64]int{}
	}
	if h.count[id] += n; h.count[id] == 0 {
		delete(h.count, id)
	}
	return h.count[id]
}

func (h *heldQuestions) has(id int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count[id] > 0
}

func (h *heldQuestions) all() []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.count))
}

// since returns since when no connection has held a question, as far as this gateway can know.
func (h *heldQuestions) since(q domain.Question) time.Time {
	if q.HeldUntil.After(h.began) {
		return q.HeldUntil
	}
	return h.began
}

// hold counts a connection that waits for a question until release is called.
func (s *Questions) hold(ctx context.Context, id int64) (release func()) {
	if s.held.add(id, 1) == 1 && s.table.reloader.changes != nil {
		_ = s.store.HoldQuestions(ctx, clock.Now().Add(holdLease), id) // if this fails, sayHeld will do it
	}
	return func() {
		q, known := s.table.get(id)
		if s.held.add(id, -1) > 0 || !known || q.State != domain.QuestionOpen {
			return
		}
		_ = s.table.write(ctx, func(ctx context.Context) ([]domain.Question, []int64, error) {
			if q, known = s.table.get(id); q.State != domain.QuestionOpen {
				return nil, nil, nil
			}
			q.HeldUntil = clock.Milli()
			return []domain.Question{q}, nil, s.store.HoldQuestions(ctx, q.HeldUntil, id)
		})
	}
}

// sayHeld tells other gateways which questions are held here.
func (s *Questions) sayHeld(ctx context.Context) error {
	ids := s.held.all()
	if len(ids) == 0 || s.table.reloader.changes == nil {
		return nil
	}
	return s.store.HoldQuestions(ctx, clock.Now().Add(holdLease), ids...)
}

// questionKey returns the Key of a question.
func questionKey(q domain.Question) string {
	parts := append([]string{string(q.Kind), q.Prompt, q.Project, q.StoryID}, q.Options...)
	if q.Tool != nil {
		input := slices.Clone(jsontext.Value(q.Tool.Input))
		// Clients write the same input in different ways; unreadable input is compared as it is.
		_ = input.Format(jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawInts(false),
			jsontext.CanonicalizeRawFloats(false), jsontext.PreserveRawStrings(false))
		parts = []string{"tool", q.Tool.Name, string(input)}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:16])
}
