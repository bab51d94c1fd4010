package login

import (
	"context"
	"sync"
	"time"
)

// maxSpent bounds the states that are remembered, at about 100 bytes each and twice.
const maxSpent = 1 << 15

// Spent remembers the states of logins that have had their callback, for as long as they could come again.
type Spent interface {
	// SpendLogin remembers a state. It reports false for one that was there.
	SpendLogin(ctx context.Context, state string) (first bool, err error)
}

// spent is that of a gateway that is alone. Under a flood it forgets sooner: then it is the provider that takes no code
// twice. The zero value is ready for use.
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
