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
	// Moves returns the moves of all projects before a time; NotFound when they are to be read from stays.
	Moves(ctx context.Context) (before time.Time, moves []byte, err error)
	SaveMoves(ctx context.Context, before time.Time, moves []byte) error
}

const (
	// stayMemory bounds how old ended stays are that are read, maxRecentStays how many of all projects are, and maxProjectStays
	// how many of one.
	stayMemory                      = 90 * 24 * time.Hour
	maxRecentStays, maxProjectStays = 200_000, 20_000
	// maxLastingStays is how many stays that last are read at a start for all projects at once. Where there are more, each
	// project's are read when they are needed.
	maxLastingStays = 200_000
	// saveInterval is how long what became of stays waits to be written. What a crash loses is found again in the stream and
	// in the pipelines.
	saveInterval = time.Second
	// maxUnsaved is how many changes are written at once while the stream is being caught up with.
	maxUnsaved = 5000
	// catchUpPatience is how long a reader waits until everything in the stream is accounted for. The first time that takes
	// about 10 µs for each event, later only what is new counts.
	catchUpPatience = 100 * time.Millisecond
)

// Stays are where the stories of all projects are and have been, by the stream and by what pipelines show.
type Stays struct {
	store    stayStore
	changes  Changes // nil where no other gateway observes anything
	duties   Duties
	events   *Events
	projects *Projects

	catching  background // the reading of what is new in the stream
	recalling background // the reading of what was saved of projects that memory has nothing of
	reading   sync.Mutex // one project's at a time, so that connections are left for pages

	mu        sync.Mutex
	loaded    bool
	upTo      int64 // the id up to which events are accounted for
	day       int   // when moves were forgotten last
	byProject map[string]*domain.StageHistory
	unread    map[string]*unreadHistory // of others; of takes it in
	revision  uint64                    // grows with every change of what memory knows
	names     map[storyID]string        // of stories that pipelines showed, to be saved
	changed   map[string]bool           // projects with stays to be saved
	unsaved   int                       // events since the last save
	saved     int64                     // upTo when it was saved last
	complete  map[string]bool           // projects of which memory has all that the store has
	movesOnly map[string]bool           // others of which it has all but what lasts
	moves     savedMoves
	registry  *domain.Registry // whose other projects were forgotten last

	// Where several gateways share the store, each knows where stories are, and one saves that.
	saving     bool             // this one does
	epoch      int64            // under which
	stale      bool             // what is stored is to be read again before anything is saved
	restarts   int64            // those of events
	generation int              // how often that was done
	ahead      map[string]int64 // by project: the id up to which what was read of it accounts for events already
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

// observe takes in what a project's pipeline showed that was asked for then, unless it is the one that was observed last. It
// returns the one that is observed now: answer is to be observed again while newer events contradict it.
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

// withLimits calls use with what tells after how long in a stage of work a story of a project needs attention.
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

// Of returns the stays of a story, the first of them first, without those of which the arrival is not known. Blocked is how
// long the story was blocked in each until now.
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

// markChanged notes that a project's history has changed, and is to be saved. Callers hold mu.
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
