package service

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"switchyard/internal/domain"
)

const (
	// SessionTime is how long a session lasts. Then one logs in again.
	SessionTime = 7 * 24 * time.Hour
	// sessionTouch is how old the stored time at which a session was seen last may be.
	sessionTouch = time.Minute
	// sessionIDBytes is the random part of a session's id.
	sessionIDBytes = 20
)

type accessStore interface {
	AddSession(ctx context.Context, s domain.Session) error
	Sessions(ctx context.Context) ([]domain.Session, error)
	TouchSession(ctx context.Context, id string, seen time.Time) error
	RemoveSession(ctx context.Context, id string) error
	RemoveSessionsBefore(ctx context.Context, then time.Time) error
}

// Access knows who is logged in. Sessions are kept in memory, and stored so that a restart neither ends nor revives any.
type Access struct {
	store accessStore
	log   *slog.Logger

	mu       sync.Mutex
	sessions map[string]domain.Session // by id
}

func loadAccess(ctx context.Context, store accessStore, log *slog.Logger) (*Access, error) {
	if err := store.RemoveSessionsBefore(ctx, time.Now().Add(-SessionTime)); err != nil {
		log.WarnContext(ctx, "old sessions could not be removed", "error", err)
	}
	stored, err := store.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	a := &Access{store: store, log: log, sessions: make(map[string]domain.Session, len(stored))}
	for _, s := range stored {
		a.sessions[s.ID] = s
	}
	return a, nil
}

// BeginSession begins a session of who, who came in via.
func (a *Access) BeginSession(ctx context.Context, who, via string, role domain.Role) (domain.Session, error) {
	now := time.Now()
	s := domain.Session{ID: randomText(sessionIDBytes), Who: who, Via: via, Role: role, CreatedAt: now, LastSeen: now}
	if err := a.store.AddSession(context.WithoutCancel(ctx), s); err != nil {
		return domain.Session{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, old := range a.sessions {
		if now.Sub(old.CreatedAt) >= SessionTime {
			delete(a.sessions, id)
		}
	}
	a.sessions[s.ID] = s
	return s, nil
}

// Session returns the session of that id, which counts as seen now; false when it has ended or never was.
func (a *Access) Session(ctx context.Context, id string) (domain.Session, bool) {
	now := time.Now()
	a.mu.Lock()
	s, ok := a.sessions[id]
	ok = ok && now.Sub(s.CreatedAt) < SessionTime
	stale := ok && now.Sub(s.LastSeen) >= sessionTouch
	if stale {
		s.LastSeen = now
		a.sessions[id] = s
	}
	a.mu.Unlock()
	if stale {
		if err := a.store.TouchSession(context.WithoutCancel(ctx), id, now); err != nil && domain.CodeOf(err) != domain.NotFound {
			a.log.WarnContext(ctx, "a session could not be touched", "error", err)
		}
	}
	return s, ok
}

// EndSession ends a session, if there is one of that id.
func (a *Access) EndSession(ctx context.Context, id string) error {
	if err := a.store.RemoveSession(context.WithoutCancel(ctx), id); err != nil && domain.CodeOf(err) != domain.NotFound {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sessions, id)
	return nil
}
