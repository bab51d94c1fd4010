// Package cluster lets several gateways on one database share their work: each duty (following a project's feed, running the
// bot, removing old events) belongs to one live gateway at a time.
//
// A gateway is alive while it renews its lease. Duties are spread by rendezvous hashing over the live gateways, so that few
// of them move when one comes or goes. Every grant of a duty has a higher epoch than the one before, and writes check it: a
// gateway that was frozen or cut off writes nothing after another one has taken over.
package cluster

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// ErrLapsed says that a lease ended before it was renewed: others may have taken its duties.
var ErrLapsed = errors.New("the lease has lapsed")

// Gateway is one of the live gateways.
type Gateway struct {
	ID        string
	Name      string // of its host
	StartedAt time.Time
	// Duties is how many it has, Feeds how many projects it follows, and Bot whether it runs the bot; only Store.Gateways sets
	// them.
	Duties, Feeds int
	Bot           bool
}

// Store keeps leases and duties in the database. All times are the database's own.
type Store interface {
	// Join adds a gateway with a lease.
	Join(ctx context.Context, g Gateway, lease time.Duration) error
	// Renew renews the lease of the gateway and returns the ids of all live ones, itself among them, and after how long the
	// next lease of another one ends unless that is renewed, 0 where there is no other. It returns ErrLapsed when the lease
	// was over.
	Renew(ctx context.Context, id string, lease time.Duration) (live []string, next time.Duration, err error)
	// Claim gives the gateway those of the duties that no other live gateway has, and returns their epochs.
	Claim(ctx context.Context, id string, duties []string) (granted map[string]int64, err error)
	// Held returns the duties that the gateway has.
	Held(ctx context.Context, id string) (duties []string, err error)
	// Release takes those of the duties from the gateway that it has.
	Release(ctx context.Context, id string, duties []string) error
	// Leave ends the gateway's lease, so that others can claim all its duties.
	Leave(ctx context.Context, id string) error
	// Gateways returns the live gateways, the first to start first.
	Gateways(ctx context.Context) ([]Gateway, error)
	// Released returns a channel that is closed when duties are released, or gateways join or leave, anywhere.
	Released() <-chan struct{}
}

// Member is this gateway as one of several.
type Member struct {
	store  Store
	log    *slog.Logger
	name   string
	wanted func() []string
	plan   *plan // only for Run

	mu       sync.Mutex
	id       string
	duties   map[string]int64 // the epochs of what this gateway has
	trusted  time.Time        // until when, by the monotonic clock
	outdated chan struct{}    // closed when duties change
	expiry   *time.Timer      // drops the duties when the trust is over
}

// New returns a member that is not yet alive. wanted returns the names of all duties that there are, in a slice that does not
// change; host names this gateway to people.
func New(store Store, log *slog.Logger, host string, wanted func() []string) *Member {
	return &Member{store: store, log: log, name: host, wanted: wanted, outdated: make(chan struct{})}
}

// ID returns the id of this gateway's present lease, "" while it has none.
func (m *Member) ID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.id
}

// Epoch returns under which epoch this gateway has the duty, false when it does not have it, or can no longer be sure.
func (m *Member) Epoch(duty string) (epoch int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	epoch, ok = m.duties[duty]
	return epoch, ok && time.Now().Before(m.trusted)
}

// Changed returns a channel that is closed when this gateway gets or loses duties. Ask for it before Epoch.
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

// set publishes the duties under a lease that was renewed at began at the latest.
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

// replace replaces the duties, and wakes up those who wait for that. Callers hold mu.
func (m *Member) replace(duties map[string]int64) {
	m.duties = duties
	close(m.outdated)
	m.outdated = make(chan struct{})
}
