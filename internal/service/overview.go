package service

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/domain"
)

const (
	// quietAge is how old a pipeline in a snapshot may be if no event has arrived since. In this time any number of readers cost one
	// round of fetches.
	quietAge = 2 * time.Second
	// snapshotAge is how long readers share a snapshot, and how old a pipeline in it may be after an event.
	snapshotAge = 500 * time.Millisecond
	// snapshotShare limits the cost of snapshots, which are slow with thousands of projects: each is shared for snapshotShare times as
	// long as it took, but no longer than maxSnapshotAge.
	snapshotShare, maxSnapshotAge = 25, 2 * time.Second
)

// Overview combines the state of all projects, for frequent readers.
type Overview struct {
	projects  *Projects
	pipelines *Pipelines
	alerts    *Alerts
	charts    *Charts
	agents    *Agents
	events    *Events

	openAlerts atomic.Int64
	taking     background  // a snapshot, for those who do not wait for it
	known      atomic.Bool // whether there is one

	mu        sync.Mutex
	last      *Snapshot // nil before the first
	takenAt   time.Time
	age       time.Duration // how long last is shared
	lastEvent int64         // the newest event when last was taken
	changed   int64         // Alerts.changed at that time
}

// Snapshot is the state of all projects. It is shared and must not be changed. The times at which pipelines were seen are only
// updated together with something else.
type Snapshot struct {
	Registry  *domain.Registry
	Pipelines []domain.ProjectPipeline // of Registry.Projects, in its order
	Charts    []domain.Charts          // likewise; empty until they are drawn
	Alerts    domain.Alerts
	Together  domain.Charts  // of all projects; empty until they are drawn
	Agents    []domain.Agent // alive ones

	took time.Duration // the time to take it, without waiting
}

// Snapshot returns a snapshot of the current registry, at most snapshotAge old, or maxSnapshotAge with thousands of projects.
// Concurrent readers wait for the same one.
func (o *Overview) Snapshot(ctx context.Context) (*Snapshot, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last != nil && o.last.Registry == o.projects.Registry() && time.Since(o.takenAt) < o.age && o.changed == o.alerts.changed.Load() {
		return o.last, nil
	}
	ctx = context.WithoutCancel(ctx) // others wait for it, too
	takenAt, lastEvent, maxAge := time.Now(), o.events.LastID(), quietAge
	if o.last != nil && o.lastEvent != lastEvent {
		maxAge = snapshotAge
	}
	changed := o.alerts.changed.Load()
	if o.last == nil {
		o.pipelines.firstReaders.begin()
		defer o.pipelines.firstReaders.end()
	}
	next, err := o.take(ctx, maxAge, o.last)
	if err != nil {
		return nil, err
	}
	o.last, o.takenAt, o.lastEvent, o.changed = next, takenAt, lastEvent, changed
	o.age = min(max(snapshotAge, snapshotShare*next.took), maxSnapshotAge)
	o.openAlerts.Store(int64(next.Alerts.Open))
	o.known.Store(true)
	return next, nil
}

// take takes a snapshot. It shares what has not changed with the last one, which may be nil, so that pages can quickly tell that
// nothing has changed, even with thousands of projects (BenchmarkSnapshot).
func (o *Overview) take(ctx context.Context, maxAge time.Duration, last *Snapshot) (*Snapshot, error) {
	s := &Snapshot{}
	var err error
	var known []domain.ProjectPipeline
	if last != nil {
		known = last.Pipelines
	}
	s.Registry, s.Pipelines = o.pipelines.recentSince(ctx, maxAge, known)
	began := time.Now()
	if s.Alerts, err = o.alerts.List(ctx, s.Pipelines); err != nil {
		return nil, err
	}
	s.Agents = o.agents.Alive()
	if s.Charts, err = o.charts.Draw(ctx, s.Pipelines); err != nil {
		return nil, err
	}
	if last != nil && domain.SameArray(s.Charts, last.Charts) {
		s.Together = last.Together
	} else {
		s.Together = domain.SumCharts(s.Charts)
	}
	s.took = time.Since(began)
	return s, nil
}

// OpenAlerts returns the number of alerts in the last snapshot that nobody has acknowledged. It never waits.
func (o *Overview) OpenAlerts() int { return int(o.openAlerts.Load()) }
