package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// useInterval is how often the last uses of sessions and tokens are stored. A crash can lose those of one interval.
const useInterval = 30 * time.Second

// load brings memory up to date with the store, which other gateways may change as well.
func (a *Access) load(ctx context.Context) error {
	a.change.Lock() // a change of our own is in both, or in neither
	defer a.change.Unlock()
	sessions, err := a.store.Sessions(ctx)
	if err != nil {
		return err
	}
	tokens, err := a.store.NamedTokens(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	stored := map[string]bool{}
	for _, t := range tokens {
		stored[t.ID] = true
		switch known := a.tokens[t.ID]; {
		case known == nil:
			a.addToken(t)
		case t.LastUsed.After(known.LastUsed):
			known.LastUsed = t.LastUsed
		}
	}
	a.dropTokens(func(t domain.NamedToken) bool { return !stored[t.ID] })
	clear(stored)
	for _, s := range sessions {
		stored[s.ID] = true
		switch known := a.sessions[s.ID]; {
		case known == nil:
			a.sessions[s.ID] = &sessionEntry{s, newHolder()}
		case s.LastSeen.After(known.LastSeen):
			known.LastSeen = s.LastSeen
		}
	}
	for _, s := range a.sessions {
		if !stored[s.ID] {
			a.dropSession(s)
		}
	}
	return nil
}

// Run stores the last uses of sessions and tokens, and removes expired ones, until ctx ends. It returns an error when
// the store failed; nothing is lost if it is run again.
func (a *Access) Run(ctx context.Context) error {
	for supervise.Sleep(ctx, useInterval) {
		err := errors.Join(a.dropEnded(ctx), a.saveUses(ctx))
		if err != nil && ctx.Err() == nil && domain.CodeOf(err) != domain.Unavailable {
			return err
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalSave)
	defer cancel()
	return a.saveUses(last)
}

// dropEnded ends expired sessions, and requests and claims of expired tokens. The tokens themselves are removed after
// expiredTokenLife.
func (a *Access) dropEnded(ctx context.Context) error {
	now := clock.Now()
	a.mu.Lock()
	ended, forgotten, tokens := false, now.Add(-expiredTokenLife), len(a.tokens)
	a.dropTokens(func(t domain.NamedToken) bool { return t.Expired(forgotten) })
	expired := len(a.tokens) < tokens
	for _, s := range a.sessions {
		if s.isOver(a.tokens[s.TokenID], now) {
			a.dropSession(s)
			ended = true
		}
	}
	over := map[string]bool{}
	for _, t := range a.tokens {
		if t.Expired(now) {
			t.end()
			over[domain.TokenHolder+t.ID] = true
		}
	}
	a.mu.Unlock()
	var err error
	if isOver := func(c domain.Claim) bool { return over[c.Holder] }; slices.ContainsFunc(a.claims.list(), isOver) {
		if err = a.store.EndClaimsOfExpired(ctx, now); err == nil {
			a.claims.drop(isOver)
		}
	}
	if ended {
		err = errors.Join(err, a.store.RemoveSessionsBefore(ctx, now.Add(-SessionTime)))
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
			sessions[id] = s.LastSeen
		}
	}
	for id, t := range a.tokens {
		if t.unsaved {
			tokens[id] = t.LastUsed
		}
	}
	a.mu.Unlock()
	if len(sessions)+len(tokens) == 0 {
		return nil
	}
	if err := a.store.SaveUses(ctx, sessions, tokens); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, saved := range sessions {
		if s := a.sessions[id]; s != nil {
			s.unsaved = s.LastSeen.After(saved)
		}
	}
	for id, saved := range tokens {
		if t := a.tokens[id]; t != nil {
			t.unsaved = t.LastUsed.After(saved)
		}
	}
	return nil
}
