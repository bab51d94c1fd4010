package service

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

type visitStore interface {
	// ProjectVisits reads the visits of at most readAtOnce projects.
	ProjectVisits(ctx context.Context, projects []string, now time.Time) (map[string]*domain.ProjectVisits, error)
	StoryVisits(ctx context.Context, project, storyID string, limit int) ([]domain.Visit, error)
	// ObserveVisits returns the changed visits, and the projects of which newer events contradict a sighting.
	ObserveVisits(
		ctx context.Context, token int64, observed ...domain.Observation,
	) (changed []domain.Visit, contradicted []string, err error)
	VisitedProjects(ctx context.Context) ([]string, error)
	// RemoveVisits removes at most limit visits of a project that ended before a time, or that are not among the newest
	// keep.
	RemoveVisits(
		ctx context.Context, token int64, project string, before time.Time, keep, limit int,
	) (removed int, err error)
}

const (
	// readAtOnce is how many projects' visits are read by one statement.
	readAtOnce = 100
	// visitPatience is how long a caller waits for visits that are not in memory. Those of 100 usual projects take about
	// 30 ms.
	visitPatience = 100 * time.Millisecond
	// maxPendingVisits is how many changes of a project wait for the next reader.
	maxPendingVisits = 1000
	// maxStoryVisits is how many visits of a story are shown.
	maxStoryVisits = 500
)

// Visits are the stages in which the stories of all projects are and have been. The store has them; memory has what
// pages need of the projects that were asked for.
type Visits struct {
	store    visitStore
	changes  Changes // nil if no other gateway shares the store
	leader   Leadership
	projects *Projects
	log      *slog.Logger

	mu         sync.Mutex
	byProject  map[string]*visitState
	generation uint64   // how often everything was forgotten
	token      int64    // under which this gateway leads, -1 if it does not
	position   int64    // up to which a gateway that does not lead has read changes, 0 before the first time
	wanted     []string // to be read
	reading    bool
	observed   observations
	news       *projectNews // wakes those who wait for a board that another gateway follows
}

type visitState struct {
	version uint64
	known   *domain.ProjectVisits // nil if not in memory
	pending []domain.Visit        // changes of known, or of what is being read
	read    chan struct{}         // closed when known has been read; nil while it is not being read
	again   bool                  // what is being read is out of date
	err     error                 // of the last read
	credit  observationCredit
	merged  observationCredit // of its history
}

func newVisits(
	store visitStore, changes Changes, leader Leadership, projects *Projects, news *projectNews,
	log *slog.Logger,
) *Visits {
	s := &Visits{store: store, changes: changes, leader: leader, projects: projects, news: news, log: log}
	s.forget()
	s.observed = observations{queue: map[string]observation{}, news: make(chan struct{}, 1)}
	return s
}

// forget empties memory, so that everything is read again. The caller holds mu.
func (s *Visits) forget() {
	s.generation++
	s.token, s.position = tokenOr(s.leader, -1), 0
	for _, state := range s.byProject {
		if state.read != nil { // what is being read may be out of date
			close(state.read)
		}
	}
	s.byProject, s.wanted = map[string]*visitState{}, nil
}

// Forget empties memory: the store has lost what it had.
func (s *Visits) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
}

// turn makes memory start anew when this gateway begins or ceases to lead: only the leader knows at once what
// changes. The caller holds mu.
func (s *Visits) turn() {
	if s.token != tokenOr(s.leader, -1) {
		s.forget()
	}
}

// state returns the state of a project. The caller holds mu.
func (s *Visits) state(project string) *visitState {
	s.turn()
	state := s.byProject[project]
	if state == nil {
		registry := s.projects.Registry()
		if len(s.byProject) > 2*len(registry.Projects)+readAtOnce { // many were removed
			maps.DeleteFunc(s.byProject, func(name string, state *visitState) bool {
				_, registered := registry.Find(name)
				return !registered && state.read == nil
			})
		}
		state = &visitState{}
		s.byProject[project] = state
	}
	return state
}

// Version returns a number that is different after each change of a project's visits.
func (s *Visits) Version(project string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state(project)
	return s.generation<<32 + state.version
}

// Generation returns how often memory has started anew. What was observed before must be observed again.
func (s *Visits) Generation() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn()
	return s.generation
}

func (state *visitState) settle() {
	if state.known != nil && len(state.pending) > 0 {
		state.known, state.pending = state.known.With(state.pending), nil
	}
}

// Project returns a project's visits. It returns Unavailable if reading them takes too long.
func (s *Visits) Project(ctx context.Context, project string) (*domain.ProjectVisits, error) {
	if err := s.Load(ctx, project); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state(project)
	if state.settle(); state.known == nil {
		return nil, domain.Errorf(domain.Unavailable, "the stage history is being read")
	}
	return state.known, nil
}

// Story returns a story's visits in order, without those whose beginning is unknown. Blocked is how long it has been
// blocked in each.
func (s *Visits) Story(ctx context.Context, project, id string) ([]domain.Visit, error) {
	stored, err := s.store.StoryVisits(ctx, project, id, maxStoryVisits)
	var visits []domain.Visit
	for _, v := range stored {
		if v.Stage != "" && !v.From.IsZero() {
			v.Blocked = v.BlockedFor(clock.Now())
			visits = append(visits, v)
		}
	}
	return visits, err
}

// apply takes in changes that have been stored, of each story in order.
func (s *Visits) apply(changed []domain.Visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	touched := map[*visitState]bool{}
	for _, v := range changed {
		state := s.state(v.Project)
		if !touched[state] {
			s.news.wake(v.Project)
		}
		touched[state] = true
		if state.known != nil || state.read != nil {
			state.pending = append(state.pending, v)
		}
	}
	for state := range touched {
		state.version++
		if len(state.pending) > maxPendingVisits {
			state.settle()
		}
	}
}

// follow takes in what the leader has changed. Run by a reloader.
func (s *Visits) follow(ctx context.Context) error {
	s.mu.Lock()
	s.turn()
	position, generation := s.position, s.generation
	s.mu.Unlock()
	if s.leader.Leads() {
		return nil
	}
	changed, replaced, next, err := s.changes.VisitsSince(ctx, position)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.turn()
	current := s.generation == generation
	if current && next < position { // a standby database that lacks the last transactions has taken over
		s.forget()
	}
	if current {
		s.position = next
	}
	s.mu.Unlock()
	if current {
		s.apply(changed)
		s.reread(replaced...)
	}
	return nil
}

const (
	// visitLife is how long visits are kept after their end, and maxKeptVisits how many of a project, the newest: charts
	// need 90 days, the flow twice 180.
	visitLife     = 400 * 24 * time.Hour
	maxKeptVisits = 250_000
	oldVisitPause = time.Hour
)

// Run observes pipelines and removes old visits until ctx ends.
func (s *Visits) Run(ctx context.Context) error {
	group := supervise.New(ctx, s.log)
	group.Go("observed pipelines", s.observeQueued)
	group.Go("old visits", func(ctx context.Context) error {
		for supervise.Sleep(ctx, oldVisitPause) {
			if err := unlessLost(s.RemoveOld(ctx)); err != nil {
				return supervise.UnlessEnded(ctx, err)
			}
		}
		return nil
	})
	group.Wait()
	return nil
}

func (s *Visits) RemoveOld(ctx context.Context) error {
	token, leads := s.leader.Token()
	if !leads {
		return nil
	}
	projects, err := s.store.VisitedProjects(ctx)
	if err != nil {
		return err
	}
	steps, before := newSteps(4), clock.Now().Add(-visitLife)
	for _, project := range projects {
		for more := true; more; {
			err := steps.do(ctx, func() error {
				removed, err := s.store.RemoveVisits(ctx, token, project, before, maxKeptVisits, steps.size)
				more = removed == steps.size
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
