package login

import (
	"context"
	"sync"
	"time"
)

// maxSpent is how many states are remembered, in each of two generations, at about 100 bytes each.
const maxSpent = 1 << 15

// Spent remembers the states of logins whose callback has arrived, for as long as it could be replayed.
type Spent interface {
	// SpendLogin remembers a state. It returns false for one that it knows already.
	SpendLogin(ctx context.Context, state string) (first bool, err error)
}

// spent is the Spent of a single gateway. Under a flood it forgets sooner; then only the provider refuses a code's
// second use. The zero value is ready for use.
type spent struct {
	mu            sync.Mutex
	recent, older map[string]bool
	since         time.Time
}

func (s *spent) SpendLogin(_ context.Context, state string) (first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent == nil || len(s.recent) >= maxSpent || time.Since(s.since) > AttemptTime {
		s.older, s.recent, s.since = s.recent, map[string]bool{}, time.Now()
	}
	if s.recent[state] || s.older[state] {
		return false, nil
	}
	s.recent[state] = true
	return true, nil
}
