package service

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

const (
	SessionTime    = 12 * time.Hour
	sessionIDBytes = 20 // random ones
	// maxSessions limits the sessions of an account; a new one ends the oldest.
	maxSessions = 50
	// expiredTokenLife is how long an expired token stays listed.
	expiredTokenLife = 30 * 24 * time.Hour
)

// Access holds the live sessions and named tokens in memory, written through to the store.
type Access struct {
	store    *database
	audit    *Audit
	claims   *claimTable // a token's end with it
	reloader *reloader
	sessions table[string, sessionEntry] // by id, newest first
	tokens   table[string, tokenEntry]   // by id; its change is taken before that of sessions

	mu     sync.Mutex // taken before those of the tables
	byHash map[string]tokenEntry
	// endedTokens are those of agents' commands that ended recently, by hash.
	endedTokens map[string]endedToken
}

// Identity is who a session or token belongs to.
type Identity struct {
	domain.Actor
	SessionID string // "" for a token
	TokenID   string // the named token, or the one that the session was made with; "" for neither
	// Ended is closed when the session or token ends, and with it everything it authorized. Nil means never.
	Ended context.Context
}

type sessionEntry struct {
	domain.Session
	*holder
}

type tokenEntry struct {
	domain.NamedToken
	*holder
}

type holder struct {
	ended context.Context
	end   context.CancelFunc
	used  time.Time // last; guarded by the mu of Access
	saved time.Time // the last use stored
}

func newHolder(used time.Time) *holder {
	ended, end := context.WithCancel(context.Background())
	return &holder{ended, end, used, used}
}

// BeginSession begins a session for an actor who has just logged in. It ends with the named token tokenID, if that is
// not "". It returns Unauthorized when that token has ended.
func (a *Access) BeginSession(ctx context.Context, actor domain.Actor, tokenID, from string) (domain.Session, error) {
	now := clock.Now()
	s := domain.Session{
		ID: randomText(sessionIDBytes), Who: actor.Who, Account: actor.Account, Via: actor.Via, Role: actor.Role,
		TokenID: tokenID, CreatedAt: now, LastSeen: now,
	}
	a.tokens.change.Lock() // the token must not go before the session is stored
	defer a.tokens.change.Unlock()
	if tokenID != "" && !a.inForce(tokenID, now) {
		return domain.Session{}, domain.Errorf(domain.Unauthorized, "this token has just been revoked")
	}
	change := domain.Change{
		Action: domain.SessionBegan, Subject: s.Who, Detail: details("role: "+string(s.Role), valueOf("from", from)),
		Project: actor.Project, Repeats: true,
	}
	return s, a.sessions.write(ctx, func(ctx context.Context) (begun []sessionEntry, ended []string, err error) {
		others := 0
		for _, other := range a.sessions.list() {
			if other.Account != s.Account {
				continue
			}
			if others++; others >= maxSessions { // the store ends the same ones
				ended = append(ended, other.ID)
			}
		}
		return []sessionEntry{{s, newHolder(now)}}, ended, a.audit.change(ctx, change, func(e *domain.AuditEntry) error {
			return a.store.AddSession(ctx, e, s, maxSessions)
		})
	})
}

func newestFirst(x, y sessionEntry) int {
	return cmp.Or(cmp.Compare(y.CreatedAt.UnixMilli(), x.CreatedAt.UnixMilli()), cmp.Compare(x.ID, y.ID))
}

// find looks for an identity in memory, and in the store if it is not there: another gateway may just have added it.
func (a *Access) find(ctx context.Context, look func(now time.Time) *Identity) (who *Identity) {
	locked := func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		who = look(clock.Now())
	}
	if locked(); who == nil && a.reloader.refreshStale(ctx) == nil {
		locked()
	}
	return who
}

// Session returns the identity of a session and updates its last use. It returns nil when the session has ended or
// never existed.
func (a *Access) Session(ctx context.Context, id string) *Identity {
	return a.find(ctx, func(now time.Time) *Identity {
		s, known := a.sessions.get(id)
		if !known || a.isOver(s, now) {
			return nil
		}
		s.used = now
		who := &Identity{
			Actor:     domain.Actor{Who: s.Who, Via: s.Via, Role: s.Role, Account: s.Account},
			SessionID: s.ID, TokenID: s.TokenID, Ended: s.ended,
		}
		if token, known := a.tokens.get(s.TokenID); known {
			who.Project, who.AgentID = token.Project, token.AgentID
		}
		return who
	})
}

// isOver reports whether a session or its token has expired, or the token is gone.
func (a *Access) isOver(s sessionEntry, now time.Time) bool {
	return now.Sub(s.CreatedAt) >= SessionTime || s.TokenID != "" && !a.inForce(s.TokenID, now)
}

// inForce reports whether the named token exists and has not expired.
func (a *Access) inForce(id string, now time.Time) bool {
	t, known := a.tokens.get(id)
	return known && !t.Expired(now)
}

// Sessions returns the live sessions, newest first.
func (a *Access) Sessions() []domain.Session {
	now := clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	var sessions []domain.Session
	for _, s := range a.sessions.list() {
		if !a.isOver(s, now) {
			s.LastSeen = s.used
			sessions = append(sessions, s.Session)
		}
	}
	return sessions
}

// EndSession ends a session. It returns NotFound for an unknown id.
func (a *Access) EndSession(ctx context.Context, id string) error {
	end := func(ctx context.Context) (_ []sessionEntry, ended []string, err error) {
		s, known := a.sessions.get(id)
		if !known {
			return nil, nil, domain.Errorf(domain.NotFound, "there is no such session")
		}
		change := domain.Change{
			Action: domain.SessionEnded, Subject: s.Who, Detail: "it began at " + exactTime(s.CreatedAt),
			Project: domain.ActorOf(ctx).Project,
			Repeats: domain.ActorOf(ctx).Account == s.Account, // people may log out often
		}
		return nil, []string{id}, a.remove(ctx, change, func(e *domain.AuditEntry) error {
			return a.store.RemoveSession(ctx, e, id)
		})
	}
	_, err := retry(ctx, func() (any, error) { return nil, a.sessions.write(ctx, end) }, a.reloader)
	return err
}

// EndOtherSessions ends all sessions but one, in one change, and returns how many it ended.
func (a *Access) EndOtherSessions(ctx context.Context, own string) (n int, err error) {
	err = a.sessions.write(ctx, func(ctx context.Context) (_ []sessionEntry, ended []string, err error) {
		var accounts []string
		now := clock.Now()
		for _, s := range a.sessions.list() {
			if s.ID == own {
				continue
			}
			if ended = append(ended, s.ID); a.isOver(s, now) {
				continue
			}
			if n++; !slices.Contains(accounts, s.Who) {
				accounts = append(accounts, s.Who)
			}
		}
		if n == 0 {
			return nil, nil, nil
		}
		change := domain.Change{
			Action: domain.SessionEnded, Subject: strings.Join(accounts, ", "),
			Detail: domain.Count(n, "session", "sessions"),
		}
		return nil, ended, a.remove(ctx, change, func(e *domain.AuditEntry) error {
			return a.store.RemoveOtherSessions(ctx, e, own)
		})
	})
	return n, err
}

func (a *Access) remove(ctx context.Context, change domain.Change, remove func(*domain.AuditEntry) error) error {
	if err := a.audit.change(ctx, change, remove); domain.CodeOf(err) != domain.NotFound {
		return err
	}
	return nil
}

// endAgentTokens ends in memory the agents' tokens that the store has already ended.
func (a *Access) endAgentTokens(ended func(domain.NamedToken) bool) {
	a.tokens.drop(func(t tokenEntry) bool { return t.AgentID != "" && ended(t.NamedToken) })
}

// tokensChanged ends the sessions of tokens that are gone. The row of a token never changes.
func (a *Access) tokensChanged(gone, added []tokenEntry) {
	over := map[string]bool{}
	a.mu.Lock()
	for _, t := range added {
		a.byHash[t.Hash] = t
	}
	for _, t := range gone {
		delete(a.byHash, t.Hash)
		if t.AgentID != "" {
			a.keepEnded(t.NamedToken)
		}
		over[t.ID] = true
		t.end()
	}
	a.mu.Unlock()
	if len(gone) > 0 {
		a.sessions.drop(func(s sessionEntry) bool { return over[s.TokenID] })
	}
}
