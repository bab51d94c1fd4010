package handlers

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"switchyard/internal/domain"
)

const (
	// pageAge is how old a pipeline may be that a page shows while no event came: any number of tabs cost one round of
	// fetches in this time.
	pageAge = 2 * time.Second
	// snapshotAge is for how long readers share one look at all projects, and how old a pipeline may be that a page shows
	// after an event.
	snapshotAge = 500 * time.Millisecond
)

// snapshot is how all projects are, as the console shows it. It is shared and never changes.
type snapshot struct {
	at        time.Time
	lastEvent int64 // when it was taken
	registry  *domain.Registry
	pipelines []domain.ProjectPipeline // of registry.Projects, in its order
	attention []domain.Alert
	finished  []domain.DayCount // stories of all projects; none while they are not counted
	// Numbers of versions: the same number is the same look.
	changes          []uint64 // of each pipeline
	attentionVersion uint64
	version          uint64 // of all of it
}

// snapshots holds the newest snapshot.
type snapshots struct {
	mu    sync.Mutex
	last  *snapshot
	count uint64 // of versions and changes
}

// look returns the newest snapshot. Readers that come at once wait for the same one.
func (c *console) look(r *http.Request) (*snapshot, error) {
	s := &c.snapshots
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.last
	if old != nil && old.registry == c.service.Projects.Registry() && time.Since(old.at) < snapshotAge {
		return old, nil
	}
	ctx := context.WithoutCancel(r.Context()) // others wait for it, too
	next := &snapshot{at: time.Now(), lastEvent: c.service.Events.LastID()}
	age := pageAge
	if old != nil && old.lastEvent != next.lastEvent {
		age = snapshotAge
	}
	next.registry, next.pipelines = c.service.Pipelines.All(ctx, age)
	var err error
	if next.attention, err = c.service.Alerts.List(ctx, next.pipelines); err != nil {
		return nil, err
	}
	charts, err := c.service.Charts.Draw(ctx, next.pipelines)
	if err != nil {
		return nil, err
	}
	for _, chart := range charts {
		next.finished = domain.AddDays(next.finished, chart.Days)
	}
	if old == nil {
		old = &snapshot{}
	}
	next.follow(old, &s.count)
	s.last = next
	return next, nil
}

// follow numbers what next shows, with the numbers of old where it is the same.
func (next *snapshot) follow(old *snapshot, count *uint64) {
	next.attentionVersion = old.attentionVersion
	if !slices.Equal(next.attention, old.attention) {
		*count++
		next.attentionVersion = *count
	}
	same := next.registry == old.registry && next.attentionVersion == old.attentionVersion && slices.Equal(next.finished, old.finished)
	next.changes = make([]uint64, len(next.pipelines))
	for i, p := range next.pipelines {
		if j, known := old.index(p.Project); known && samePipeline(p, old.pipelines[j]) {
			next.changes[i] = old.changes[j]
			continue
		}
		*count++
		next.changes[i], same = *count, false
	}
	next.version = old.version
	if !same {
		*count++
		next.version = *count
	}
}

// index returns where the project's pipeline is.
func (s *snapshot) index(project string) (i int, known bool) {
	if s.registry == nil {
		return 0, false
	}
	return s.registry.Index(project)
}

// samePipeline reports whether pages show a and b alike: all but when an answer came, unless it is an old one.
func samePipeline(a, b domain.ProjectPipeline) bool {
	return a.Project == b.Project && a.URL == b.URL && a.Error == b.Error && a.Reachable == b.Reachable && a.Stale == b.Stale &&
		bytes.Equal(a.Raw, b.Raw) && (!a.Stale || a.FetchedAtMS == b.FetchedAtMS) && (a.Reachable || a.LastSeenMS == b.LastSeenMS)
}
