package cluster

import (
	"context"
	"slices"
	"time"

	"switchyard/internal/supervise"
)

// docs/design/lease.md says why these times.
const (
	LeaseTime = 3 * time.Second
	renewal   = 500 * time.Millisecond
	// margin is how much earlier, by its monotonic clock, the leader considers its own lease over.
	margin = 500 * time.Millisecond
	// soonest is the shortest pause between renewals; they come early when the lease is about to end.
	soonest = 10 * time.Millisecond
	// standDown is how long a gateway that resigned for want of fitness leaves the lease to fit ones.
	standDown = time.Minute
	// leaveTime limits how long a clean stop may take.
	leaveTime = time.Second
)

// Run keeps this gateway live and competes for the lease until ctx ends, and then releases it at once.
func (m *Member) Run(ctx context.Context) error {
	defer m.leave()
	failing := false
	for {
		began, released := time.Now(), m.store.Released()
		pause, err := m.step(ctx)
		failing = m.logRenewal(ctx, failing, err)
		select {
		case <-time.After(time.Until(began.Add(pause))):
		case <-released:
		case <-m.wake:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// logRenewal logs when renewals begin to fail, and when they succeed again. It returns whether they fail, which the
// next call takes as failing.
func (m *Member) logRenewal(ctx context.Context, failing bool, err error) bool {
	switch {
	case ctx.Err() != nil:
		return failing
	case err != nil && !failing:
		m.log.WarnContext(ctx, "cannot renew the lease", "error", err)
	case err == nil && failing:
		m.log.InfoContext(ctx, "the lease is renewed again")
	}
	return err != nil
}

// step renews what this gateway has and takes the lease if it is free. It returns the interval, from when it was
// called, after which to call it again.
func (m *Member) step(ctx context.Context) (pause time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, LeaseTime-margin)
	defer cancel()
	began := time.Now()
	m.self.Unfit = !m.unfit.IsZero() && began.Sub(m.unfit) < standDown
	if m.Reaches != nil {
		m.self.Reaches = m.Reaches()
	}
	lease, others, err := m.store.Renew(ctx, m.self, LeaseTime)
	if err != nil {
		return renewal, err
	}
	if lease.Token != m.seen.Token || !lease.Until.Equal(m.seen.Until) {
		m.seen, m.seenAt = lease, time.Now()
	}
	fit := slices.ContainsFunc(others, func(g Gateway) bool { return !g.Unfit })
	if lease.Holder == m.self.ID {
		return m.hold(ctx, lease, others, fit, began)
	}
	m.follow("another gateway holds the lease")
	// A lease that stayed the same for its whole time has lapsed, too: the database's clock may have been set back.
	if left := min(lease.Left, LeaseTime-time.Since(m.seenAt)); left > 0 && lease.Holder != "" {
		return min(renewal, time.Since(began)+max(left, soonest)), nil
	}
	if m.self.Unfit && fit {
		return renewal, nil
	}
	began = time.Now()
	token, granted, err := m.store.TakeOver(ctx, m.self.ID, lease, LeaseTime)
	if granted {
		m.lead(token, began)
	}
	return renewal, err
}

// hold leads under the lease that this gateway holds, unless it should resign.
func (m *Member) hold(
	ctx context.Context, lease Lease, others []Gateway, fit bool, began time.Time,
) (pause time.Duration, err error) {
	why := ""
	if fit {
		why = m.whyResign(others)
	}
	if why == "" && m.lead(lease.Token, began) {
		return renewal, nil
	}
	if why != "" {
		m.unfit = time.Now()
		m.follow(why)
		supervise.Sleep(ctx, margin)
	}
	return 0, m.store.Resign(ctx, m.self.ID)
}

// tooLate is why a gateway that cannot renew its lease in time leaves the lead to one that may.
const tooLate = "the lease could not be renewed in time"

// whyResign returns why another gateway should lead, "" for no reason.
func (m *Member) whyResign(others []Gateway) string {
	m.mu.Lock()
	expired := m.expired
	m.expired = false
	m.mu.Unlock()
	if expired {
		return tooLate
	}
	if m.Fitness == nil {
		return ""
	}
	return m.Fitness(others)
}

func (m *Member) leave() {
	m.mu.Lock()
	if m.token != 0 {
		m.set(0)
	}
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	if err := m.store.Leave(ctx, m.self.ID); err != nil {
		m.log.Warn("cannot release the lease; another gateway takes over when it ends", "error", err)
	}
}
