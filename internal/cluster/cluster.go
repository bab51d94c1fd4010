// Package cluster divides work among several gateways on one database: each duty (following a project's feed, running the
// bot, removing old events) belongs to one live gateway at a time.
//
// A gateway is live while it renews its lease. Rendezvous hashing assigns duties to live gateways, so that few duties move
// when a gateway joins or leaves. Each grant of a duty has a higher epoch than the one before, and writes check the epoch: a
// gateway that was frozen or cut off cannot write once another one has taken over.
package cluster

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// ErrLapsed is returned when a lease ended before it was renewed: other gateways may have taken its duties.
var ErrLapsed = errors.New("the lease has lapsed")

// Gateway is one of the live gateways.
type Gateway struct {
	ID        string
	Name      string // of its host
	StartedAt time.Time
	// The number of its duties, the number of projects that it follows, and whether it runs the bot. Only Store.Gateways sets
	// them.
	Duties, Feeds int
	Bot           bool
}

// Store keeps leases and duties in the database, by the database's clock.
type Store interface {
	// Join adds a gateway with a lease.
	Join(ctx context.Context, g Gateway, lease time.Duration) error
	// Renew renews the gateway's lease. It returns the ids of all live gateways, including this one, and the time until the
	// first lease of another gateway ends unless it is renewed, 0 if there is no other. It returns ErrLapsed.
	Renew(ctx context.Context, id string, lease time.Duration) (live []string, next time.Duration, err error)
	// Claim grants the gateway those of the duties that no other live gateway has, and returns their epochs.
	Claim(ctx context.Context, id string, duties []string) (granted map[string]int64, err error)
	// Held returns the gateway's duties and their epochs.
	Held(ctx context.Context, id string) (duties []string, err error)
	// Release gives up those of the duties that the gateway has.
	Release(ctx context.Context, id string, duties []string) error
	// Leave ends the gateway's lease, so that others can claim all its duties.
	Leave(ctx context.Context, id string) error
	// Gateways returns the live gateways, sorted by their time of starting.
	Gateways(ctx context.Context) ([]Gateway, error)
	// Released returns a channel that is closed when any gateway joins, leaves, or releases duties.
	Released() <-chan struct{}
}

// Member is this gateway's membership in the cluster. It is safe for concurrent use.
type Member struct {
	store  Store
	log    *slog.Logger
	name   string
	wanted func() []string
	plan   *plan // only for Run

	mu       sync.Mutex
	id       string
	duties   map[string]int64 // this gateway's duties with their epochs
	trusted  time.Time        // when they must no longer be relied on, by the monotonic clock
	outdated chan struct{}    // closed when duties change
	expiry   *time.Timer      // drops the duties at that time
}

// New returns a member that joins when it runs. wanted returns the names of all duties, in a slice that never changes; host is
// this gateway's name for people.
func New(store Store, log *slog.Logger, host string, wanted func() []string) *Member {
	return &Member{store: store, log: log, name: host, wanted: wanted, outdated: make(chan struct{})}
}

// ID returns the id of this gateway's current lease, "" while it has none.
func (m *Member) ID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.id
}

// Epoch returns the epoch under which this gateway has the duty. It returns false if it does not have the duty, or can no
// longer be sure.
func (m *Member) Epoch(duty string) (epoch int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	epoch, ok = m.duties[duty]
	return epoch, ok && time.Now().Before(m.trusted)
}

// Changed returns a channel that is closed when this gateway gets or loses duties. Call it before Epoch, so as not to miss a
// change.
func (m *Member) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.outdated
}

func (m *Member) held() map[string]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.duties
}

// set publishes the duties. The request that renewed their lease was sent at began.
func (m *Member) set(id string, duties map[string]int64, began time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.id, m.trusted = id, began.Add(LeaseTime-margin)
	if !maps.Equal(m.duties, duties) {
		m.replace(duties)
	}
	if m.expiry != nil {
		m.expiry.Stop()
	}
	m.expiry = time.AfterFunc(time.Until(m.trusted), m.expire)
}

// expire drops the duties of a lease that was not renewed in time.
func (m *Member) expire() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.duties) == 0 || time.Now().Before(m.trusted) {
		return
	}
	m.replace(nil)
}

// replace replaces the duties and closes the channel of Changed. The caller holds mu.
func (m *Member) replace(duties map[string]int64) {
	m.duties = duties
	close(m.outdated)
	m.outdated = make(chan struct{})
}
