package service

import (
	"context"
	"log/slog"
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
	// Moves returns in how many pieces the moves of all projects before a time are stored. It returns NotFound when there are none
	// and moves must be read from stays.
	Moves(ctx context.Context) (before time.Time, pieces int, err error)
	// MovesPiece returns a piece by its number, from 0. It returns NotFound when the pieces have been replaced.
	MovesPiece(ctx context.Context, piece int, before time.Time) (moves []byte, err error)
	SaveMoves(ctx context.Context, before time.Time, pieces [][]byte) error
}

const (
	// stayMemory is the age up to which ended stays are read, at most maxRecentStays of all projects together and maxProjectStays
	// of one.
	stayMemory                      = 90 * 24 * time.Hour
	maxRecentStays, maxProjectStays = 200_000, 20_000
	// maxLastingStays is how many current stays are read at the start for all projects at once. If there are more, each project's
	// are read when needed.
	maxLastingStays = 200_000
	// saveInterval is how long changed stays wait to be stored. Those lost in a crash are reconstructed from the stream and the
	// pipelines.
	saveInterval = time.Second
	// busySaveInterval replaces saveInterval while events come in. At 100 a second, storing the changes of a whole second
	// takes 4 to 8 ms, for which new events wait (make bench, "event at a project server → stream reader").
	busySaveInterval = 200 * time.Millisecond
	// maxUnsaved is how many changes are stored at once while reading the stream from an old position.
	maxUnsaved = 5000
	// catchUpPatience is how long a caller waits until all events in the stream have been read. At first that takes about 10 µs an
	// event; later only new events are read.
	catchUpPatience = 100 * time.Millisecond
)

// Stays keeps where the stories of all projects are and have been, derived from the stream and from pipelines.
type Stays struct {
	store    stayStore
	leader   Leadership
	events   *Events
	projects *Projects

	catching  background // reads new events
	recalling background // reads saved stays of projects that are not in memory
	reading   sync.Mutex // one project is read at a time, to leave connections for pages
	pieces    sync.Mutex // one piece of moves is read at a time, likewise
	pieceSize int        // as the constant; smaller in tests

	mu        sync.Mutex
	loaded    bool
	upTo      int64 // the last event that has been applied
	day       int   // when old moves were last removed
	byProject map[string]*domain.StageHistory
	unread    map[string]*unreadHistory // of other projects, decoded when needed
	revision  uint64                    // increases with every change in memory
	names     map[storyID]string        // from pipelines, to be saved
	changed   map[string]bool           // projects with unsaved stays
	unsaved   int                       // events since the last save
	saved     int64                     // upTo at the last save
	complete  map[string]bool           // projects of which everything stored is in memory
	movesOnly map[string]bool           // projects of which everything but the current stays is in memory
	moves     savedMoves
	registry  *domain.Registry // whose removed projects have been forgotten

	generation int // how often everything has been read again
	duty       savingDuty
	covered    map[string]int64 // by project: the last event covered by its stored stays, if later than upTo
}

func newStays(store stayStore, leader Leadership, events *Events, projects *Projects, log *slog.Logger) *Stays {
	s := &Stays{store: store, leader: leader, events: events, projects: projects, duty: savingDuty{ours: isAlone(leader)}, pieceSize: pieceSize}
	s.catching.log, s.recalling.log = log, log
	s.reset()
	return s
}

// reset empties memory, so that everything is read again. The caller holds mu.
func (s *Stays) reset() {
	s.loaded, s.duty.stale, s.moves, s.registry, s.unsaved = false, false, savedMoves{}, nil, 0
	s.unread = nil
	s.byProject, s.names, s.changed = map[string]*domain.StageHistory{}, map[storyID]string{}, map[string]bool{}
	s.complete, s.movesOnly, s.covered = map[string]bool{}, map[string]bool{}, map[string]int64{}
	s.generation++
	s.revision++
}

// of returns a project's history. The caller holds mu.
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

// observe applies a project's pipeline, whose fetch began at asked, unless it is the one observed last. It returns the answer that
// now counts as observed: one that newer events contradict must be observed again.
func (s *Stays) observe(project string, answer, observed *domain.PipelineAnswer, asked time.Time) *domain.PipelineAnswer {
	if answer == observed || answer.EventsOnly {
		return observed
	}
	ctx := context.Background()
	if done, err := s.catchUp(ctx); !done || err != nil {
		return observed
	}
	if err := s.remember(ctx, map[string]bool{project: true}); err != nil {
		return observed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.of(project)
	before := h.Version()
	agreed := h.Observe(project, answer.Stages, answer.Note == "", clock.Of(asked), clock.Now())
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

// maxStays is how many stays of a story are shown.
const maxStays = 500

// Of returns the stays of a story in order, without those whose arrival is unknown. Blocked is how long the story has been blocked
// in each.
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

// markChanged records that a project's history has changed and must be saved. The caller holds mu.
func (s *Stays) markChanged(project string) {
	s.changed[project] = true
	s.revision++
}

// version returns a number that increases with every change of a project's history. The caller holds mu.
func (s *Stays) version(project string) uint64 {
	return uint64(s.generation)<<32 + s.of(project).Version()
}
