package service

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/domain"
)

const (
	// snapshotAge is how long readers share a snapshot, and how old a pipeline in it may be after an event.
	snapshotAge = 500 * time.Millisecond
	// snapshotShare limits the cost of snapshots, which are slow with thousands of projects: each is shared for
	// snapshotShare times as long as it took to make, but no longer than maxSnapshotAge.
	snapshotShare, maxSnapshotAge = 25, 2 * time.Second
)

// Overview combines the state of all projects for pages and other frequent readers.
type Overview struct {
	projects  *Projects
	pipelines *Pipelines
	alerts    *Alerts
	claims    *Claims
	sessions  *Sessions
	stories   *Stories
	agents    *Agents
	events    *Events
	flow      *Flow

	open atomic.Pointer[domain.Alerts] // of the last snapshot

	mu        sync.Mutex
	last      *Snapshot // nil before the first
	takenAt   time.Time
	age       time.Duration // how long last is shared
	lastEvent int64         // the newest event when last was made
	// acknowledged and claimed are the versions of the acknowledgements and claims at that time.
	acknowledged, claimed int
}

// Snapshot is the state of all projects. It is shared and must not be changed.
type Snapshot struct {
	*Boards
	Alerts domain.Alerts
	Agents []domain.Agent // alive ones
	Owners *domain.Owners
	// Sessions are those of coding agents that work on stories.
	Sessions map[domain.StoryKey][]domain.AgentSession
}

// Snapshot returns a snapshot of the current registry, at most snapshotAge old, or maxSnapshotAge with thousands of
// projects. Concurrent readers wait for the same one.
func (o *Overview) Snapshot(ctx context.Context) *Snapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	claimed := o.claims.table.version()
	if o.last != nil && o.last.Registry == o.projects.Registry() && time.Since(o.takenAt) < o.age &&
		o.acknowledged == o.alerts.acknowledged.version() {
		if o.claimed != claimed { // many may be claimed in a second; everything else stays shared
			next := *o.last
			next.Owners = o.claims.Owners(next.Agents)
			o.last, o.claimed = &next, claimed
		}
		return o.last
	}
	ctx = context.WithoutCancel(ctx) // others wait for it, too
	takenAt, lastEvent, maxAge := time.Now(), o.events.LastID(), quietAge
	acknowledged := o.alerts.acknowledged.version()
	o.claimed = claimed
	if o.last != nil && o.lastEvent != lastEvent {
		maxAge = snapshotAge
	}
	boards := o.pipelines.Boards(ctx, maxAge)
	began := time.Now()
	alerts := domain.NewAlerts(o.alerts.all(boards))
	o.last = &Snapshot{Boards: boards, Alerts: alerts, Agents: o.agents.Alive()}
	o.last.Owners, o.last.Sessions = o.claims.Owners(o.last.Agents), o.sessions.ByStory()
	o.takenAt, o.lastEvent, o.acknowledged = takenAt, lastEvent, acknowledged
	o.age = min(max(snapshotAge, snapshotShare*(boards.took+time.Since(began))), maxSnapshotAge)
	o.open.Store(&alerts)
	return o.last
}

// Run forgets removed projects at once, until ctx ends.
func (o *Overview) Run(ctx context.Context) error {
	for {
		changed := o.projects.Changed()
		o.pipelines.forget()
		o.flow.forget()
		o.flow.visits.forgetRemoved()
		o.mu.Lock()
		if o.last != nil && o.last.Registry != o.projects.Registry() {
			o.last = nil
		}
		o.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// OpenAlerts returns how many alerts in the last snapshot nobody has acknowledged, counted as people see them, and the
// worst of their signals. It never waits.
func (o *Overview) OpenAlerts() (int, domain.Signal) {
	alerts := o.open.Load()
	if alerts == nil || alerts.Open == 0 {
		return 0, domain.SignalNone
	}
	open := alerts.Items[:min(alerts.Open, len(alerts.Items))]
	if slices.ContainsFunc(open, func(a domain.Alert) bool { return a.Kind.Signal() == domain.SignalStop }) {
		return alerts.Rows, domain.SignalStop
	}
	return alerts.Rows, domain.SignalCaution
}

type ProjectSnapshot struct {
	Project  domain.Project
	Active   bool
	Pipeline domain.ProjectPipeline
	Overdue  domain.Overdue // of its stories
	Charts   domain.Charts
	Agents   []domain.RegisteredAgent // alive and assigned to it, without the time of their last heartbeat
	Owners   *domain.Owners           // of its stories

	alerts []domain.Alert
}

func (o *Overview) Owners() *domain.Owners { return o.claims.Owners(o.agents.Alive()) }

// Project returns the state of one project without asking any other. It returns NotFound.
func (o *Overview) Project(ctx context.Context, name string) (ProjectSnapshot, error) {
	registry, board, err := o.pipelines.Board(ctx, name, quietAge)
	if err != nil {
		return ProjectSnapshot{}, err
	}
	project, _ := registry.Find(name)
	p := ProjectSnapshot{
		Project: project, Active: registry.Active == name, Pipeline: board.Pipeline, Charts: board.Charts,
		Overdue: domain.OverdueOf(name, board.alerts),
		alerts:  board.alerts,
	}
	var agents []domain.Agent
	for _, agent := range o.agents.All() {
		if agent.Project == name && agent.Presence == domain.AgentAlive {
			agent.LastSeen = time.Time{} // it changes all the time
			p.Agents = append(p.Agents, agent)
			agents = append(agents, agent.Agent)
		}
	}
	p.Owners = o.claims.Owners(agents)
	return p, nil
}

type StorySnapshot struct {
	ProjectSnapshot
	Story  domain.Story
	Alerts []domain.Alert // about the story
}

// Story returns the state of a story. If recent is set, the story itself may be as old as Stories.Recent says. It
// returns NotFound.
func (o *Overview) Story(ctx context.Context, project, id string, recent bool) (s StorySnapshot, err error) {
	get := o.stories.Get
	if recent {
		get = o.stories.Recent
	}
	if s.Story, err = get(ctx, project, id); err != nil {
		return s, err
	}
	if s.ProjectSnapshot, err = o.Project(ctx, project); err != nil {
		return s, err
	}
	for _, alert := range slices.Concat(s.alerts, o.alerts.overBudget()) {
		if alert.Project == project && alert.Story != nil && alert.Story.StoryID == id {
			if a, known := o.alerts.acknowledged.get(alert.Key()); known {
				alert.Acknowledged = &a
			}
			s.Alerts = append(s.Alerts, alert)
		}
	}
	return s, nil
}
