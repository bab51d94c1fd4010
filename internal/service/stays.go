package service

import (
	"context"
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

type stayStore interface {
	StaysUpTo(ctx context.Context) (id int64, err error)
	RecentStays(ctx context.Context, since time.Time, limit int) ([]domain.Stay, error)
	LastingStays(ctx context.Context, project string) ([]domain.Stay, error)
	AllLastingStays(ctx context.Context, limit int) ([]domain.Stay, error)
	ProjectStays(ctx context.Context, project string, since time.Time, limit int) ([]domain.Stay, error)
	Stays(ctx context.Context, project, storyID string, limit int) ([]domain.Stay, error)
	SaveStays(ctx context.Context, c domain.StayChanges) error
	// Moves returns in how many pieces the moves of all projects before a time are stored; NotFound when they are to be read from
	// stays.
	Moves(ctx context.Context) (before time.Time, pieces int, err error)
	// MovesPiece returns one of them, from 0 on; NotFound when there are other ones by now.
	MovesPiece(ctx context.Context, piece int, before time.Time) (moves []byte, err error)
	SaveMoves(ctx context.Context, before time.Time, pieces [][]byte) error
}

const (
	// stayMemory is the age beyond which ended stays are not read; at most maxRecentStays are read of all projects together, and
	// maxProjectStays of one.
	stayMemory                      = 90 * 24 * time.Hour
	maxRecentStays, maxProjectStays = 200_000, 20_000
	// maxLastingStays is how many stays that last are read at a start for all projects at once. Where there are more, each
	// project's are read when they are needed.
	maxLastingStays = 200_000
	// saveInterval is how long changes of stays wait to be stored. What a crash loses is found again in the stream and in the
	// pipelines.
	saveInterval = time.Second
	// maxUnsaved is how many changes are stored at once while the stream is being caught up with.
	maxUnsaved = 5000
	// catchUpPatience is how long a reader waits until everything in the stream is accounted for. At first that takes about 10 µs
	// an event; later only new events have to be read.
	catchUpPatience = 100 * time.Millisecond
)

// Stays know where the stories of all projects are and have been, from the stream and from what pipelines show.
type Stays struct {
	store    stayStore
	changes  Changes // nil where no other gateway observes anything
	duties   Duties
	events   *Events
	projects *Projects

	catching  background // the reading of what is new in the stream
	recalling background // the reading of what was saved of projects that are not in memory
	reading   sync.Mutex // one project at a time, so that pages find free connections
	pieces    sync.Mutex // one piece of moves at a time, likewise

	mu        sync.Mutex
	loaded    bool
	upTo      int64 // the id up to which events are accounted for
	day       int   // when moves were forgotten last
	byProject map[string]*domain.StageHistory
	unread    map[string]*unreadHistory // of other projects, until of decodes it
	revision  uint64                    // grows with every change in memory
	names     map[storyID]string        // of stories that pipelines showed, to be saved
	changed   map[string]bool           // projects with stays to be saved
	unsaved   int                       // events since the last save
	saved     int64                     // upTo when it was saved last
	complete  map[string]bool           // projects of which memory has all that is stored
	movesOnly map[string]bool           // others of which it has all but the lasting stays
	moves     savedMoves
	registry  *domain.Registry // by which projects were last forgotten

	// Where several gateways share the store, each knows where stories are, and one saves that.
	saving     bool             // this one does
	epoch      int64            // of that duty
	stale      bool             // the store is to be read again before anything is saved
	restarts   int64            // Events.restarts as last seen
	generation int              // how often everything was read again
	ahead      map[string]int64 // by project: the event id up to which what was read of it accounts for the stream
	arrivals   arrivals
}

func newStays(store stayStore, changes Changes, duties Duties, events *Events, projects *Projects) *Stays {
	s := &Stays{store: store, changes: changes, duties: duties, events: events, projects: projects, saving: isAlone(duties)}
	s.arrivals.news = make(chan struct{}, 1)
	s.reset()
	return s
}

// reset forgets everything, so that it is read again. Callers hold mu.
func (s *Stays) reset() {
	s.loaded, s.stale, s.moves, s.registry, s.unsaved = false, false, savedMoves{}, nil, 0
	s.unread = nil
	s.byProject, s.names, s.changed = map[string]*domain.StageHistory{}, map[storyID]string{}, map[string]bool{}
	s.complete, s.movesOnly, s.ahead = map[string]bool{}, map[string]bool{}, map[string]int64{}
	s.arrivals.position, s.arrivals.seen, s.arrivals.taken = 0, nil, nil
	s.generation++
	s.revision++
}

// of returns a project's history. Callers hold mu.
func (s *Stays) of(project string) *domain.StageHistory {
	h := s.byProject[project]
	if h == nil {
		h = &domain.StageHistory{}
		s.byProject[project] = h
		if s.unread[project] != nil {
			s.takeIn(h, project)
		}
	}
	return h
}

// observe applies what a project's pipeline, asked for at that time, showed, unless it is the one that was observed last. It
// returns the one that counts as observed now: an answer that newer events contradict is to be observed again.
func (s *Stays) observe(project string, answer, observed *domain.PipelineAnswer, asked time.Time) *domain.PipelineAnswer {
	if answer == observed || answer.EventsOnly {
		return observed
	}
	ctx := context.Background()
	if done, err := s.catchUp(ctx); !done || err != nil {
		return observed
	}
	if known, err := s.recall(ctx, map[string]bool{project: true}); !known || err != nil {
		return observed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.of(project)
	before := h.Version()
	agreed := h.Observe(project, answer.Stages, answer.Note == "", clock.Of(asked), clock.Now())
	if arrived := h.TakeArrivals(); s.changes != nil {
		s.arrivals.note(project, arrived)
	}
	if h.Version() != before {
		s.markChanged(project)
		for _, stage := range answer.Stages {
			for _, item := range stage.Items {
				s.names[storyID{project, item.StoryID}] = item.StoryName
			}
		}
	}
	if agreed {
		return answer
	}
	return observed
}

// withLimits calls use with a function that returns how long a story of a project may be in a stage of work before it needs
// attention.
func (s *Stays) withLimits(use func(domain.StuckLimit)) {
	now := clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	project, history := "", &domain.StageHistory{} // of the one that was asked for last
	use(func(name, stage string) time.Duration {
		if name != project {
			project, history = name, s.of(name)
		}
		return history.StuckLimit(stage, now)
	})
}

// maxStays is how many stays of a story are shown.
const maxStays = 500

// Of returns the stays of a story in their order, without those whose arrival is not known. Blocked is how long the story was
// blocked in each until now.
func (s *Stays) Of(ctx context.Context, project, id string) ([]domain.Stay, error) {
	if _, err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	stored, err := s.store.Stays(ctx, project, id, maxStays)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var stays []domain.Stay
	for _, stay := range s.of(project).Newer(id, stored) {
		if stay.Stage != "" && !stay.From.IsZero() {
			stay.Blocked = stay.BlockedFor(clock.Now())
			stays = append(stays, stay)
		}
	}
	return stays, nil
}

// markChanged records that a project's history has changed and must be saved. Callers hold mu.
func (s *Stays) markChanged(project string) {
	s.changed[project] = true
	s.revision++
}

// revisionNow returns a number that grows with the changes of all histories.
func (s *Stays) revisionNow() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// version returns a number that grows with the changes of a project's history. Callers hold mu.
func (s *Stays) version(project string) uint64 {
	return uint64(s.generation)<<32 + s.of(project).Version()
}
