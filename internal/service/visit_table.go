package service

import (
	"log/slog"
	"maps"
	"sync"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/keyed"
)

const (
	// readAtOnce is how many projects' visits one statement reads, and newestVisits how many of each at first: a
	// project that is being looked at waits for the current statement, and is shown with these until all are read.
	readAtOnce, newestVisits = 10, 1000
	// maxVisits is how many visits of a project are in memory: all that are kept, and those since old ones were removed.
	maxVisits = maxKeptVisits + 50_000
	// visitPatience is how long a caller waits for visits that are not in memory. Those of 100 typical projects take
	// about 30 ms.
	visitPatience = 100 * time.Millisecond
	// maxPendingVisits is how many changes of a project wait for the next reader.
	maxPendingVisits = 1000
	// maxStoryVisits is how many visits of a story are shown.
	maxStoryVisits = 500
)

// visitTable holds in memory the visits of projects that were asked for.
type visitTable struct {
	store    *database
	changes  Changes // nil if no other gateway shares the store
	leader   domain.Leadership
	projects *Projects
	log      *slog.Logger

	mu         sync.Mutex
	byProject  map[string]*visitState
	generation uint64   // how often everything was forgotten
	versions   uint64   // the last version given to any project's visits
	token      int64    // that of this gateway's lease, -1 if it does not lead
	position   int64    // up to which a gateway that does not lead has read changes, 0 before the first time
	wanted     []string // to be read
	reading    bool
	completing sync.Mutex     // held while all visits of a project are read; taken before mu
	news       *keyed.Waiters // wakes those who wait for a board that another gateway follows
}

type visitState struct {
	version uint64
	known   *domain.ProjectVisits // nil if not in memory
	pending []domain.Visit        // changes of known, or of what is being read
	whole   chan struct{}         // closed when all has been read; nil while known has all
	applied int                   // how many of pending are in known
	read    chan struct{}         // closed when known has been read; nil while it is not being read
	again   bool                  // what is being read is out of date
	removed bool                  // the project was removed while they were being read
	err     error                 // of the last read
	credit  observationCredit
	merged  observationCredit // of its history
}

func (s *visitTable) forget() {
	s.generation++
	s.token, s.position = tokenOr(s.leader, -1), 0
	for _, state := range s.byProject {
		if state.whole = nil; state.read != nil { // what is being read may be out of date
			close(state.read)
		}
	}
	s.byProject, s.wanted = map[string]*visitState{}, nil
}

func (s *visitTable) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
}

// turn empties memory when this gateway begins or ceases to lead: only the leader learns of changes at once. The caller
// holds mu.
func (s *visitTable) turn() {
	if s.token != tokenOr(s.leader, -1) {
		s.forget()
	}
}

func (s *visitTable) state(project string) *visitState {
	s.turn()
	state := s.byProject[project]
	if state == nil {
		state = &visitState{}
		s.changed(state)
		s.byProject[project] = state
	}
	return state
}

// changed gives a state a version that no project's visits have had. The caller holds mu.
func (s *visitTable) changed(state *visitState) {
	s.versions++
	state.version = s.versions
}

// forgetRemoved drops the visits of projects that are not registered; any being read are dropped afterwards.
func (s *visitTable) forgetRemoved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	registry := s.projects.Registry()
	maps.DeleteFunc(s.byProject, func(name string, state *visitState) bool {
		_, registered := registry.Find(name)
		state.removed = !registered
		return state.removed && state.read == nil
	})
}

// Version returns a number that differs after each change of a project's visits.
func (s *visitTable) Version(project string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state(project).version
}

// Generation returns how often memory has been emptied. What was observed before must be observed again.
func (s *visitTable) Generation() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn()
	return s.generation
}

func (state *visitState) settle() {
	if state.known != nil && len(state.pending) > state.applied {
		state.known, state.applied = state.known.With(state.pending[state.applied:]), len(state.pending)
	}
	if state.known != nil && state.whole == nil {
		state.pending, state.applied = nil, 0
	}
}

// apply takes in changes that have been stored, each story's in order.
func (s *visitTable) apply(changed []domain.Visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	touched := map[*visitState]bool{}
	for _, v := range changed {
		state := s.state(v.Project)
		if !touched[state] {
			s.news.Wake(v.Project, "")
		}
		touched[state] = true
		if state.known != nil || state.read != nil {
			state.pending = append(state.pending, v)
		}
	}
	for state := range touched {
		s.changed(state)
		if len(state.pending)-state.applied > maxPendingVisits {
			state.settle()
		}
		if state.known != nil && state.known.Count > maxVisits {
			state.known, state.pending, state.applied, state.whole = nil, nil, 0, nil // only the newest are read again
		}
	}
}

const (
	// observationBurst and observationRate limit how many changes per project are stored that no event reports: twice
	// as many as a pipeline has stories at once, and then so many a second.
	observationBurst, observationRate = 40_000, 2
)

type observationCredit struct {
	spent float64
	at    time.Time
}

// spend reports whether there is enough credit, of at most burst, and if so spends n of it.
func (c *observationCredit) spend(n, burst int, now time.Time) bool {
	c.spent = max(0, c.spent-observationRate*now.Sub(c.at).Seconds())
	c.at = now
	if c.spent >= float64(burst) {
		return false
	}
	c.spent += float64(n)
	return true
}
