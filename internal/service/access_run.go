package service

import (
	"context"
	"errors"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// useInterval is how often the last uses of sessions and tokens are stored. A crash can lose those of one interval.
const useInterval = 30 * time.Second

// Run stores the last uses of sessions and tokens, and removes expired ones, until ctx ends. It returns an error when
// the store failed; nothing is lost if it is run again.
func (a *Access) Run(ctx context.Context) error {
	ticker := time.NewTicker(useInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			err := errors.Join(a.dropEnded(ctx), a.saveUses(ctx))
			if err != nil && ctx.Err() == nil && domain.CodeOf(err) != domain.Unavailable {
				return err
			}
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalSave)
			defer cancel()
			return a.saveUses(last)
		}
	}
}

// dropEnded ends expired sessions, and requests authorized by expired tokens. The tokens themselves are removed after
// expiredTokenLife.
func (a *Access) dropEnded(ctx context.Context) error {
	now := clock.Now()
	a.mu.Lock()
	ended, forgotten, tokens := false, now.Add(-expiredTokenLife), len(a.tokens)
	a.dropTokens(func(t domain.NamedToken) bool { return t.Expired(forgotten) })
	expired := len(a.tokens) < tokens
	for _, s := range a.sessions {
		if a.isOver(s, now) {
			a.dropSession(s)
			ended = true
		}
	}
	for _, t := range a.tokens {
		if t.Expired(now) {
			t.end()
		}
	}
	a.mu.Unlock()
	var err error
	if ended {
		err = a.store.RemoveSessionsBefore(ctx, now.Add(-SessionTime))
	}
	if expired {
		err = errors.Join(err, a.store.RemoveTokensExpiredBefore(ctx, forgotten))
	}
	return err
}

func (a *Access) saveUses(ctx context.Context) error {
	sessions, tokens := map[string]time.Time{}, map[string]time.Time{}
	a.mu.Lock()
	for id, s := range a.sessions {
		if s.unsaved {
			sessions[id], s.unsaved = s.LastSeen, false
		}
	}
	for id, t := range a.tokens {
		if t.unsaved {
			tokens[id], t.unsaved = t.LastUsed, false
		}
	}
	a.mu.Unlock()
	if len(sessions)+len(tokens) == 0 {
		return nil
	}
	err := a.store.SaveUses(ctx, sessions, tokens)
	if err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		for id := range sessions {
			if s := a.sessions[id]; s != nil {
				s.unsaved = true
			}
		}
		for id := range tokens {
			if t := a.tokens[id]; t != nil {
				t.unsaved = true
			}
		}
	}
	return err
}
