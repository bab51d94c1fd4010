package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"time"
)

// Leases are timed by the database's clock. The duties of a dead gateway are taken over when its lease ends, 2.5 to 3 s after it
// died: each renewal returns when the next lease of another gateway ends.
//
// A live gateway keeps its duties as long as no renewal takes more than LeaseTime - margin - renewal, 2 s. That is longer than
// a checkpoint on a slow disk or a network switch relearning its routes, and a thousand times a garbage collection pause. A
// longer delay causes a handover, in which nothing is lost or duplicated, since writes check the epoch. A longer lease would
// avoid few of these, but lengthen the outage after each crash.
const (
	LeaseTime = 3 * time.Second
	renewal   = 500 * time.Millisecond
	// margin is how much earlier, by its monotonic clock, a gateway considers its own lease over: actions outside the database,
	// such as a chat message, have that long to complete before another gateway takes over.
	margin = 500 * time.Millisecond
	// soonest is the shortest pause between renewals; they come early when another gateway's lease is about to end.
	soonest = 10 * time.Millisecond
	// maxStep is how many duties are claimed or released in one call. PostgreSQL takes 80 µs for each on a small machine, so a
	// call with 100,000 would outlast the lease, which is renewed between calls.
	maxStep = 1000
)

// Run keeps this gateway live and its duties balanced until ctx ends, and then releases them at once.
func (m *Member) Run(ctx context.Context) error {
	defer m.leave()
	failing := ""
	for {
		began, released := time.Now(), m.store.Released()
		pause, err := m.renew(ctx)
		failing = m.logRenewal(ctx, failing, err)
		select {
		case <-time.After(time.Until(began.Add(pause))):
		case <-released:
		case <-ctx.Done():
			return nil
		}
	}
}

// logRenewal logs when renewals begin to fail with another error, and when they succeed again. It returns the error's text, ""
// for success, which the next call takes as failing.
func (m *Member) logRenewal(ctx context.Context, failing string, err error) string {
	switch {
	case ctx.Err() != nil:
	case err != nil && failing != err.Error():
		m.log.WarnContext(ctx, "cannot renew the lease of this gateway", "error", err)
		return err.Error()
	case err == nil && failing != "":
		m.log.InfoContext(ctx, "the lease of this gateway has been renewed again")
		return ""
	}
	return failing
}

// renew renews the lease and rebalances the duties. It returns the interval, from when it was called, after which to call it
// again.
func (m *Member) renew(ctx context.Context) (pause time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, LeaseTime-margin)
	defer cancel()
	began := time.Now()
	id := m.ID()
	if id == "" {
		id = rand.Text()
		if err := m.store.Join(ctx, Gateway{ID: id, Name: m.name}, LeaseTime); err != nil {
			return renewal, err
		}
		m.set(id, nil, began)
	}
	live, next, err := m.store.Renew(ctx, id, LeaseTime)
	if errors.Is(err, ErrLapsed) {
		m.set("", nil, began) // a new lease has a new id: nothing of the old one counts
		return 0, err
	}
	if err != nil {
		return renewal, err
	}
	pause = renewal
	if left := time.Since(began) + max(next, soonest); next > 0 {
		pause = min(pause, left)
	}
	done, err := m.rebalance(ctx, id, m.planFor(id, live, m.wanted()), began)
	if !done && err == nil {
		pause = 0
	}
	return pause, err
}

// plan says which duties belong to this gateway.
type plan struct {
	id           string
	live, wanted []string
	ours         []string
	released     bool // the store grants this gateway none of the other duties
}

// planFor returns the plan for these gateways and duties. It reuses the last one if they have not changed: a new plan takes 15 ms
// for 100,000 projects.
func (m *Member) planFor(id string, live, wanted []string) *plan {
	if p := m.plan; p != nil && p.id == id && slices.Equal(p.live, live) && slices.Equal(p.wanted, wanted) {
		return p
	}
	m.plan = &plan{id: id, live: live, wanted: wanted}
	gateways := candidates(live)
	for _, duty := range wanted {
		if winner(duty, gateways) == id {
			m.plan.ours = append(m.plan.ours, duty)
		}
	}
	return m.plan
}

// rebalance releases the duties that belong to other gateways and claims those that belong to this one. It returns false when the
// lease, renewed at began, must be renewed before it can go on.
func (m *Member) rebalance(ctx context.Context, id string, p *plan, began time.Time) (done bool, err error) {
	held := m.held()
	if p.released && len(held) == len(p.ours) {
		m.set(id, held, began)
		return true, nil
	}
	var missing []string
	next := make(map[string]int64, len(p.ours))
	for _, duty := range p.ours {
		if epoch, have := held[duty]; have {
			next[duty] = epoch
		} else {
			missing = append(missing, duty)
		}
	}
	m.set(id, next, began)
	due := time.Now().Add(renewal)
	if !p.released {
		if done, err := m.release(ctx, id, p, due); !done {
			return false, err
		}
	}
	if len(missing) == 0 {
		return true, nil
	}
	next = maps.Clone(next)
	defer func() { m.set(id, next, began) }()
	for names := range slices.Chunk(missing, maxStep) {
		granted, err := m.store.Claim(ctx, id, names)
		maps.Copy(next, granted)
		if err != nil || time.Now().After(due) {
			return false, err
		}
	}
	return true, nil // other gateways have yet to release any that are missing
}

// release releases duties that the store grants this gateway but that belong to others, until the lease is due for renewal. After
// a failed call the store may grant more than this gateway knows of.
func (m *Member) release(ctx context.Context, id string, p *plan, due time.Time) (done bool, err error) {
	stored, err := m.store.Held(ctx, id)
	if err != nil {
		return false, err
	}
	ours := make(map[string]bool, len(p.ours))
	for _, name := range p.ours {
		ours[name] = true
	}
	others := slices.DeleteFunc(stored, func(name string) bool { return ours[name] })
	for names := range slices.Chunk(others, maxStep) {
		if err := m.store.Release(ctx, id, names); err != nil || time.Now().After(due) {
			return false, err
		}
	}
	p.released = true
	return true, nil
}

// leaveTime limits how long releasing the duties may take.
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
		m.log.Warn("cannot release the duties; other gateways take them over when the lease ends", "error", err)
	}
}
