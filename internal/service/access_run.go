package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// useInterval is how often last uses are stored; a crash loses at most one interval.
const useInterval = 30 * time.Second

func newAccess(o Options, audit *Audit, claims *claimTable) *Access {
	a := &Access{
		store: o.store, audit: audit, claims: claims, byHash: map[string]tokenEntry{}, endedTokens: map[string]endedToken{},
	}
	a.sessions = table[string, sessionEntry]{
		key: func(s sessionEntry) string { return s.ID }, compare: newestFirst,
		same: func(x, y sessionEntry) bool { return x.holder == y.holder },
		read: func(ctx context.Context) ([]sessionEntry, error) {
			stored, err := o.store.Sessions(ctx)
			return domain.Map(stored, func(s domain.Session) sessionEntry {
				known, _ := a.sessions.get(s.ID)
				return sessionEntry{s, a.holder(known.holder, s.LastSeen)}
			}), err
		},
		edited: func(gone, _ []sessionEntry) {
			for _, s := range gone {
				s.end()
			}
		},
	}
	a.tokens = table[string, tokenEntry]{
		key: func(t tokenEntry) string { return t.ID }, compare: func(x, y tokenEntry) int {
			return cmp.Or(cmp.Compare(x.Name, y.Name), x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.ID, y.ID))
		},
		same: func(x, y tokenEntry) bool { return x.holder == y.holder },
		read: func(ctx context.Context) ([]tokenEntry, error) {
			stored, err := o.store.NamedTokens(ctx)
			return domain.Map(stored, func(t domain.NamedToken) tokenEntry {
				known, _ := a.tokens.get(t.ID)
				return tokenEntry{t, a.holder(known.holder, t.LastUsed)}
			}), err
		},
		edited: a.tokensChanged,
	}
	a.reloader = newReloader(o.Changes, domain.TopicAccess, func(ctx context.Context) error {
		return errors.Join(a.sessions.load(ctx), a.tokens.load(ctx))
	})
	return a
}

// holder returns the known holder, nil for none, of what was last used at the stored time.
func (a *Access) holder(known *holder, used time.Time) *holder {
	if known == nil {
		return newHolder(used)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if used.After(known.used) { // at another gateway
		known.used, known.saved = used, used
	}
	return known
}

// Run stores last uses and removes what has expired, until ctx ends. After an error it can be run again.
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
	forgotten := now.Add(-expiredTokenLife)
	expired := a.tokens.drop(func(t tokenEntry) bool { return t.Expired(forgotten) })
	ended := a.sessions.drop(func(s sessionEntry) bool { return a.isOver(s, now) })
	over := map[string]bool{}
	for _, t := range a.tokens.list() {
		if t.Expired(now) {
			t.end()
			over[domain.TokenHolder+t.ID] = true
		}
	}
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
	sessions, tokens, saved := map[string]time.Time{}, map[string]time.Time{}, map[*holder]time.Time{}
	note := func(uses map[string]time.Time, id string, h *holder) {
		if h.used.After(h.saved) {
			uses[id], saved[h] = h.used, h.used
		}
	}
	a.mu.Lock()
	for _, s := range a.sessions.list() {
		note(sessions, s.ID, s.holder)
	}
	for _, t := range a.tokens.list() {
		note(tokens, t.ID, t.holder)
	}
	a.mu.Unlock()
	if len(saved) == 0 {
		return nil
	}
	if err := a.store.SaveUses(ctx, sessions, tokens); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for h, used := range saved {
		h.saved = used
	}
	return nil
}
