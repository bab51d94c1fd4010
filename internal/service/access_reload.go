package service

import (
	"context"

	"switchyard/internal/domain"
)

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
			a.sessions[s.ID] = newSessionEntry(s)
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
