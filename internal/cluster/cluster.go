// Package cluster elects a leader among the gateways that share a database, as docs/design/lease.md says.
package cluster

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"
)

type Gateway struct {
	ID        string
	Name      string // of its host
	StartedAt time.Time
	// Unfit says that it recently gave up the lease because it could not do the leader's work.
	Unfit bool
	// Reaches is how many of the projects that the leader cannot reach this gateway can.
	Reaches int
}

type Lease struct {
	Token  int64
	Holder string        // the id of a gateway, "" for none
	Until  time.Time     // by the database's clock
	Left   time.Duration // until then
}

// Store keeps the lease and the live gateways in the database.
type Store interface {
	// Renew keeps the gateway in the list of live ones, extends the lease if the gateway holds it, and returns it and the
	// others.
	Renew(ctx context.Context, g Gateway, ttl time.Duration) (lease Lease, others []Gateway, err error)
	// TakeOver grants the gateway the lease under the next token, unless it has changed since it was read.
	TakeOver(ctx context.Context, id string, last Lease, ttl time.Duration) (token int64, granted bool, err error)
	// Resign releases the lease if the gateway holds it.
	Resign(ctx context.Context, id string) error
	// Leave does the same, and removes the gateway from the list of live ones.
	Leave(ctx context.Context, id string) error
	// Released returns a channel that is closed when a gateway releases the lease.
	Released() <-chan struct{}
}

// Member is this gateway among those that share the database. It is safe for concurrent use.
type Member struct {
	store Store
	log   *slog.Logger
	wake  chan struct{} // of capacity 1; ends the pause between renewals
	// Fitness returns why this gateway cannot do the leader's work while others could, "" if it can; nil for always. Set
	// it before Run.
	Fitness func(others []Gateway) string
	// Reaches returns Gateway.Reaches; nil for 0. Set it before Run.
	Reaches func() int

	// only for Run
	self   Gateway
	seen   Lease     // the lease that was read last
	seenAt time.Time // when it was first seen unchanged, by the monotonic clock
	unfit  time.Time // when it resigned for want of fitness

	mu      sync.Mutex
	token   int64 // 0 while it does not lead
	refused int64 // the last token under which a write was refused
	trusted time.Time
	expired bool          // it ceased to lead because the lease was not extended in time
	changed chan struct{} // closed when token changes
	expiry  *time.Timer   // ends the leadership at trusted
}

// New returns a member that competes for the lease while it runs. host is this gateway's name for people.
func New(store Store, log *slog.Logger, host string) *Member {
	return &Member{
		store: store, log: log, self: Gateway{ID: rand.Text(), Name: host},
		wake: make(chan struct{}, 1), changed: make(chan struct{}),
	}
}

func (m *Member) ID() string { return m.self.ID }

// Token returns the fencing token under which this gateway leads, false if it does not, or can no longer be sure.
func (m *Member) Token() (token int64, leads bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.token, m.token != 0 && time.Now().Before(m.trusted)
}

func (m *Member) Leads() bool {
	_, leads := m.Token()
	return leads
}

// Changed returns a channel that is closed when this gateway begins or ceases to lead. Call it before Token.
func (m *Member) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// Refused says that a write under the token was refused. If this gateway still believes that it leads under it, it
// resigns.
func (m *Member) Refused(token int64) {
	m.mu.Lock()
	m.refused = max(m.refused, token)
	leads := m.token == token && token != 0
	if leads {
		m.set(0)
	}
	m.mu.Unlock()
	if leads {
		m.log.Warn("a write of this gateway was refused: it no longer leads", "token", token)
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
}

// lead records that this gateway holds the lease. The request that extended it was sent at began. It returns false if
// writes under the token are refused.
func (m *Member) lead(token int64, began time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if token <= m.refused {
		return false
	}
	m.trusted, m.expired = began.Add(LeaseTime-margin), false
	if m.token != token {
		m.log.Info("this gateway leads", "token", token)
		m.set(token)
	}
	if m.expiry != nil {
		m.expiry.Stop()
	}
	m.expiry = time.AfterFunc(time.Until(m.trusted), m.expire)
	return true
}

// follow records that this gateway does not lead, and logs why if it did.
func (m *Member) follow(why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.token != 0 {
		m.log.Warn("this gateway no longer leads", "token", m.token, "reason", why)
		m.set(0)
	}
}

// expire ends the leadership when the lease was not extended in time.
func (m *Member) expire() {
	m.mu.Lock()
	m.expired = m.token != 0 && !time.Now().Before(m.trusted)
	expired := m.expired
	m.mu.Unlock()
	if expired {
		m.follow(tooLate)
	}
}

// set changes the token. The caller holds mu.
func (m *Member) set(token int64) {
	m.token = token
	close(m.changed)
	m.changed = make(chan struct{})
}
