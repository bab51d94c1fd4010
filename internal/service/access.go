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
	// maxSessions is how many sessions an account may have. One more ends the oldest.
	maxSessions = 50
	// expiredTokenLife is how long an expired token stays listed.
	expiredTokenLife = 30 * 24 * time.Hour
)

// Access keeps the live sessions and the named tokens, in memory, so that requests need not read the store, and in the
// store, so that a restart neither ends nor revives any.
type Access struct {
	store  *database
	audit  *Audit
	claims *claimTable // those of a token end with it
	stored *reloader

	// change is held while store and memory are changed, so that the two agree. It is taken before mu.
	change sync.Mutex

	mu       sync.Mutex
	sessions map[string]*sessionEntry // by id
	tokens   map[string]*tokenEntry   // by id
	byHash   map[string]*tokenEntry
	// endedTokens are those of agents' commands that have just ended, by hash.
	endedTokens map[string]endedToken
}

// Identity is who a session or token belongs to.
type Identity struct {
	domain.Actor
	SessionID string // "" for a token
	TokenID   string // the named token, or the one that the session was made with; "" for neither
	// Ended is closed when the session or token ends, and with it whatever it has authorized. Nil means never.
	Ended context.Context
}

type sessionEntry struct {
	domain.Session
	holder
}

type tokenEntry struct {
	domain.NamedToken
	holder
}

// holder is what sessions and tokens have in common.
type holder struct {
	ended   context.Context
	end     context.CancelFunc
	unsaved bool // its last use is newer than what is stored
}

func newHolder() holder {
	ended, end := context.WithCancel(context.Background())
	return holder{ended: ended, end: end}
}

// BeginSession begins a session for an actor who has just logged in from an address. tokenID is the named token that
// was used, with which the session ends, or "". It returns Unauthorized when that token has ended.
func (a *Access) BeginSession(ctx context.Context, actor domain.Actor, tokenID, from string) (domain.Session, error) {
	a.change.Lock()
	defer a.change.Unlock()
	now := clock.Now()
	s := domain.Session{
		ID: randomText(sessionIDBytes), Who: actor.Who, Account: actor.Account, Via: actor.Via, Role: actor.Role,
		TokenID: tokenID, CreatedAt: now, LastSeen: now,
	}
	a.mu.Lock()
	revoked := tokenID != "" && (a.tokens[tokenID] == nil || a.tokens[tokenID].Expired(now))
	a.mu.Unlock()
	if revoked {
		return domain.Session{}, domain.Errorf(domain.Unauthorized, "this token has just been revoked")
	}
	change := domain.Change{
		Action: domain.SessionBegan, Subject: s.Who, Detail: details("role: "+string(s.Role), valueOf("from", from)),
		Project: actor.Project, Repeats: true,
	}
	ctx = context.WithoutCancel(ctx)
	return s, a.audit.change(ctx, change, func(e *domain.AuditEntry) error {
		return a.store.AddSession(ctx, e, s, maxSessions)
	}, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		var others []domain.Session
		for _, other := range a.sessions {
			if other.Account == s.Account {
				others = append(others, other.Session)
			}
		}
		slices.SortFunc(others, newestFirst)
		for _, ended := range others[min(len(others), maxSessions-1):] { // the store has ended the same ones
			a.dropSession(a.sessions[ended.ID])
		}
		a.sessions[s.ID] = &sessionEntry{s, newHolder()}
	})
}

// newestFirst compares sessions by the time at which they began, as it is stored.
func newestFirst(x, y domain.Session) int {
	return cmp.Or(cmp.Compare(y.CreatedAt.UnixMilli(), x.CreatedAt.UnixMilli()), cmp.Compare(x.ID, y.ID))
}

// find looks for an identity in memory, and in the store if it is not there: another gateway may just have added it.
func (a *Access) find(ctx context.Context, look func(now time.Time) *Identity) (who *Identity) {
	locked := func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		who = look(clock.Now())
	}
	if locked(); who == nil && a.stored.refreshStale(ctx) == nil {
		locked()
	}
	return who
}

// Session returns the identity of a session and updates its last use. It returns nil when the session has ended or
// never existed.
func (a *Access) Session(ctx context.Context, id string) *Identity {
	return a.find(ctx, func(now time.Time) *Identity {
		s := a.sessions[id]
		if s == nil || s.isOver(a.tokens[s.TokenID], now) {
			return nil
		}
		s.LastSeen, s.unsaved = now, true
		who := &Identity{
			Actor:     domain.Actor{Who: s.Who, Via: s.Via, Role: s.Role, Account: s.Account},
			SessionID: s.ID, TokenID: s.TokenID, Ended: s.ended,
		}
		if token := a.tokens[s.TokenID]; token != nil {
			who.Project, who.AgentID = token.Project, token.AgentID
		}
		return who
	})
}

// isOver reports whether a session or its token, nil for one that is gone, has expired. The caller holds mu.
func (s *sessionEntry) isOver(token *tokenEntry, now time.Time) bool {
	return now.Sub(s.CreatedAt) >= SessionTime || s.TokenID != "" && (token == nil || token.Expired(now))
}

// Sessions returns the live sessions, newest first.
func (a *Access) Sessions() []domain.Session {
	now := clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	var sessions []domain.Session
	for _, s := range a.sessions {
		if !s.isOver(a.tokens[s.TokenID], now) {
			sessions = append(sessions, s.Session)
		}
	}
	slices.SortFunc(sessions, newestFirst)
	return sessions
}

// EndSession ends a session. It returns NotFound for an unknown id.
func (a *Access) EndSession(ctx context.Context, id string) error {
	_, err := retry(ctx, func() (any, error) {
		a.change.Lock()
		defer a.change.Unlock()
		a.mu.Lock()
		s := a.sessions[id]
		a.mu.Unlock()
		if s == nil {
			return nil, domain.Errorf(domain.NotFound, "there is no such session")
		}
		change := domain.Change{
			Action: domain.SessionEnded, Subject: s.Who, Detail: "it began at " + exactTime(s.CreatedAt),
			Project: domain.ActorOf(ctx).Project,
			Repeats: domain.ActorOf(ctx).Account == s.Account, // people who log out may do so often
		}
		return nil, a.end(ctx, change, func(e *domain.AuditEntry) error { return a.store.RemoveSession(ctx, e, id) },
			func() { a.dropSession(s) })
	}, a.stored)
	return err
}

// EndOtherSessions ends all sessions but one, in one change, and returns how many it has ended.
func (a *Access) EndOtherSessions(ctx context.Context, own string) (ended int, err error) {
	a.change.Lock()
	defer a.change.Unlock()
	var accounts []string
	for _, s := range a.Sessions() {
		if s.ID == own {
			continue
		}
		if ended++; !slices.Contains(accounts, s.Who) {
			accounts = append(accounts, s.Who)
		}
	}
	if ended == 0 {
		return 0, nil
	}
	change := domain.Change{
		Action: domain.SessionEnded, Subject: strings.Join(accounts, ", "),
		Detail: domain.Count(ended, "session", "sessions"),
	}
	return ended, a.end(ctx, change,
		func(e *domain.AuditEntry) error { return a.store.RemoveOtherSessions(ctx, e, own) },
		func() {
			for id, s := range a.sessions {
				if id != own {
					a.dropSession(s)
				}
			}
		})
}

// end removes a session or token from the store, where another gateway may have removed it already, and then from
// memory by calling drop with mu held.
func (a *Access) end(
	ctx context.Context, change domain.Change, remove func(*domain.AuditEntry) error, drop func(),
) error {
	err := a.audit.change(ctx, change, remove)
	if err != nil && domain.CodeOf(err) != domain.NotFound {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	drop()
	return nil
}

// dropSession ends a session in memory. The caller holds mu.
func (a *Access) dropSession(s *sessionEntry) {
	if a.sessions[s.ID] == s {
		delete(a.sessions, s.ID)
		s.end()
	}
}

// endAgentTokens ends tokens of agents' commands in memory. The store has ended them already.
func (a *Access) endAgentTokens(ended func(domain.NamedToken) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dropTokens(func(t domain.NamedToken) bool { return t.AgentID != "" && ended(t) })
}

// addToken adds a token to memory. The caller holds mu, or a is not shared yet.
func (a *Access) addToken(t domain.NamedToken) {
	e := &tokenEntry{t, newHolder()}
	a.tokens[t.ID], a.byHash[t.Hash] = e, e
}

// dropTokens ends tokens, and the sessions made with them, in memory. The caller holds mu.
func (a *Access) dropTokens(ended func(domain.NamedToken) bool) {
	for id, t := range a.tokens {
		if !ended(t.NamedToken) {
			continue
		}
		delete(a.tokens, id)
		delete(a.byHash, t.Hash)
		if t.AgentID != "" {
			a.keepEnded(t.NamedToken)
		}
		t.end()
		for _, s := range a.sessions {
			if s.TokenID == id {
				a.dropSession(s)
			}
		}
	}
}
