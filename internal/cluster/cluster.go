// Package cluster makes several gateways on one database share their work: each duty (following a project's feed, running
// the bot, removing old events) belongs to one live gateway at a time.
//
// A gateway is alive while it renews its lease. Duties are spread by rendezvous hashing over the live gateways, so that one
// that comes or goes moves few of them. Every grant of a duty has a higher epoch than the one before, which writes check:
// a gateway that was frozen or cut off writes nothing after another one has taken over.
package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// The lease of a gateway. It counts by the clock of the database. One that dies has lost its duties to the others within
// LeaseTime and one renewal.
const (
	LeaseTime = 4 * time.Second
	renewal   = 500 * time.Millisecond
	// margin is how much earlier a gateway stops trusting its own lease, by its monotonic clock.
	margin = 500 * time.Millisecond
)

// ErrLapsed is the error of a lease that ended before it was renewed: others may have taken its duties.
var ErrLapsed = errors.New("the lease has lapsed")

// Gateway is one of the live gateways.
type Gateway struct {
	ID        string
	Name      string // of its host
	StartedAt time.Time
	// Duties is how many it has, Feeds how many projects it follows, and Bot whether it runs the bot; only Store.Gateways says so.
	Duties, Feeds int
	Bot           bool
}

// Store keeps leases and duties in the database. All times are the database's own.
type Store interface {
	// Join adds a gateway with a lease.
	Join(ctx context.Context, g Gateway, lease time.Duration) error
	// Renew renews the lease of the gateway and returns the ids of all live ones, itself among them. It returns ErrLapsed
	// when the lease was over.
	Renew(ctx context.Context, id string, lease time.Duration) (live []string, err error)
	// Claim gives the gateway those of the duties that no other live gateway has, and returns their epochs.
	Claim(ctx context.Context, id string, duties []string) (granted map[string]int64, err error)
	// Keep takes all duties from the gateway but these.
	Keep(ctx context.Context, id string, duties []string) error
	// Leave ends the gateway's lease and takes all its duties.
	Leave(ctx context.Context, id string) error
	// Gateways returns the live gateways, the first to start first.
	Gateways(ctx context.Context) ([]Gateway, error)
	// Released returns a channel that is closed when duties are released, or gateways join or leave, anywhere.
	Released() <-chan struct{}
}

// Member is this gateway as one of several.
type Member struct {
	store   Store
	log     *slog.Logger
	name    string
	wanted  func() []string
	balance struct { // among which gateways which duties are where they belong, so many of them here; only for Run
		live, wanted []string
		held         int
	}

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

// Epoch returns under which epoch this gateway has the duty, false when it has it not, or can no longer be sure.
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

// Run keeps this gateway alive and its duties in balance until ctx ends; then it gives them back at once.
func (m *Member) Run(ctx context.Context) error {
	defer m.leave()
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for {
		released := m.store.Released()
		if err := m.renew(ctx); err != nil && ctx.Err() == nil {
			m.log.WarnContext(ctx, "the lease of this gateway was not renewed", "error", err)
		}
		select {
		case <-tick.C:
		case <-released:
		case <-ctx.Done():
			return nil
		}
	}
}

// renew renews the lease, gives back the duties that belong to others by now, and claims those that belong here.
func (m *Member) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, LeaseTime-margin)
	defer cancel()
	began := time.Now()
	id := m.ID()
	if id == "" {
		id = rand.Text()
		if err := m.store.Join(ctx, Gateway{ID: id, Name: m.name}, LeaseTime); err != nil {
			return err
		}
		m.set(id, nil, began)
	}
	live, err := m.store.Renew(ctx, id, LeaseTime)
	if errors.Is(err, ErrLapsed) {
		m.set("", nil, began) // a new lease has a new id, so that nothing of the old one counts
	}
	if err != nil {
		return err
	}
	held, wanted := m.held(), m.wanted()
	if m.balanced(live, wanted, len(held)) {
		m.set(id, held, began)
		return nil
	}
	var ours, mine []string
	next := map[string]int64{}
	gateways := candidates(live)
	for _, duty := range wanted {
		if winner(duty, gateways) != id {
			continue
		}
		ours = append(ours, duty)
		if epoch, have := held[duty]; have {
			next[duty] = epoch
		} else {
			mine = append(mine, duty)
		}
	}
	m.set(id, next, began)
	// What the store calls this gateway's is more than it holds where an earlier call failed, or its trust has ended.
	if err := m.store.Keep(ctx, id, ours); err != nil {
		return err
	}
	if len(mine) > 0 {
		granted, err := m.store.Claim(ctx, id, mine)
		if err != nil {
			return err
		}
		if len(granted) > 0 {
			next = maps.Clone(next)
			maps.Copy(next, granted)
			m.set(id, next, began)
		}
		if len(granted) < len(mine) {
			return nil // another gateway has still to release the rest
		}
	}
	m.balance.live, m.balance.wanted, m.balance.held = live, wanted, len(next)
	return nil
}

// balanced reports whether nothing has come or gone since each duty was where it belongs: with 100,000 projects finding out
// where they belong takes 15 ms, at every renewal.
func (m *Member) balanced(live, wanted []string, held int) bool {
	return held == m.balance.held && slices.Equal(live, m.balance.live) && slices.Equal(wanted, m.balance.wanted)
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

// leaveTime is how long giving the duties back may take.
const leaveTime = time.Second

func (m *Member) leave() {
	id := m.ID()
	m.set("", nil, time.Now())
	if id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	if err := m.store.Leave(ctx, id); err != nil {
		m.log.Warn("duties were not given back: other gateways take them over when the lease ends", "error", err)
	}
}
