package service

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/keyed"
	"switchyard/internal/supervise"
)

const (
	// The shortest time between two background fetches of a project is refetchPause, or refetchFactor times the duration
	// of the last fetch if that is longer.
	refetchPause  = 50 * time.Millisecond
	refetchFactor = 10
)

// ProjectServers calls project servers. It limits time and size of responses.
type ProjectServers interface {
	// Pipeline fetches a project's pipeline. known is the last response or nil, and is itself returned if nothing has
	// changed. The messages of errors say in words why the project is unreachable.
	Pipeline(ctx context.Context, p domain.Project, known *domain.PipelineAnswer) (*domain.PipelineAnswer, error)
}

// fetcher fetches pipelines and derives what pages show of them, following docs/design/freshness.md.
type fetcher struct {
	projects *Projects
	servers  ProjectServers
	visits   *Visits
	log      *slog.Logger
	queue    fetchQueue
	news     *keyed.Waiters
	deriving chan struct{} // its capacity is how many derive at a time

	mu       sync.Mutex
	registry *domain.Registry // empty before the first call of setRegistry
	states   []*pipelineState // ordered as registry.Projects; replaced, never changed, with the registry
	changes  int              // how often a state or the registry has changed
}

// setRegistry forgets projects that have been removed or have a new address or token. The caller holds mu.
func (s *fetcher) setRegistry() {
	registry := s.projects.Registry()
	if s.registry == registry {
		return
	}
	states := make([]*pipelineState, len(registry.Projects))
	for i, project := range registry.Projects {
		states[i] = s.state(project)
		if states[i] == nil {
			states[i] = &pipelineState{project: project, spread: rand.Float64(), known: &boardFacts{}}
		}
	}
	s.registry, s.states = registry, states
	s.changes++
}

// state returns the state of a project at its address, nil if there is none. The caller holds mu.
func (s *fetcher) state(project domain.Project) *pipelineState {
	i, found := s.registry.Index(project.Name)
	if !found || s.registry.Projects[i] != project {
		return nil
	}
	return s.states[i]
}

func (s *fetcher) isOutdated(state *pipelineState) bool {
	return state.known.isOutdated(s.visits.Version(state.project.Name), clock.Now())
}

// renew begins to fetch a project unless it is current, or to derive it again if it is outdated. It reports whether to
// wait for that. The caller holds mu.
func (s *fetcher) renew(state *pipelineState, age pipelineAge, t turn) (awaited bool) {
	if !state.isFresh(age, 0) {
		state.want(age.oldest)
		s.begin(state, t)
		return age.trusted == 0 || !state.isNamed() || s.isOutdated(state)
	}
	outdated := s.isOutdated(state)
	if outdated {
		s.begin(state, t)
	}
	return outdated
}

// begin queues what is to be done for a project, unless it is queued or running. One that failed last time goes behind
// the others. The caller holds mu.
func (s *fetcher) begin(state *pipelineState, t turn) {
	if state.err != nil {
		t = turnBehind
	}
	switch task := state.task; {
	case task == nil:
		state.task = &pipelineTask{turn: t, done: make(chan struct{})}
	case t < task.turn && task.began.IsZero():
		task.turn = t // its other place in the queue will find it begun
	default:
		return
	}
	task := state.task
	s.queue.add(func(keepSlot func() bool) { s.work(state, task, keepSlot) }, t)
}

type result struct {
	known *boardFacts
	err   error
}

// work fetches a project's pipeline, or only derives it again if nobody wants a newer one. It outlives the request that
// caused it, and ends within the limits of ProjectServers.
func (s *fetcher) work(state *pipelineState, task *pipelineTask, keepSlot func() bool) {
	s.mu.Lock()
	if !task.began.IsZero() {
		s.mu.Unlock()
		return
	}
	task.began = time.Now()
	fetches := state.askedAt.Before(state.wanted) || state.known.answer == nil
	before := result{state.known, state.err}
	registered := s.state(state.project) == state
	s.mu.Unlock()
	after := before
	if registered {
		err := supervise.Call(func() (err error) {
			after, err = s.renewed(state.project, before, fetches, task.turn, keepSlot)
			return err
		})
		if supervise.IsPanic(err) {
			err = domain.WrapError(domain.BadGateway, err, "request failed")
		}
		if fetches || err != nil {
			after.err = err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state.task = nil
	close(task.done)
	if s.state(state.project) == state {
		s.finish(state, task, after, fetches)
	}
}

// renewed returns what is known of a project after fetching its pipeline or, failing that, deriving it again.
func (s *fetcher) renewed(
	project domain.Project, r result, fetches bool, t turn, keepSlot func() bool,
) (result, error) {
	ctx := context.Background()
	if !fetches {
		r.known = s.derive(ctx, project.Name, r.known.answer, r.known, t, keepSlot)
		return r, nil
	}
	known := r.known.answer
	answer, err := s.servers.Pipeline(ctx, project, known)
	if err != nil {
		return r, err
	}
	if answer != known || r.known.isOutdated(s.visits.Version(project.Name), clock.Now()) {
		r.known = s.derive(ctx, project.Name, answer, r.known, t, keepSlot)
	}
	return r, nil
}

// derive is like the function, but leaves processors to readers: unless a page shows that pipeline alone, it waits for
// its turn.
func (s *fetcher) derive(
	ctx context.Context, project string, answer *domain.PipelineAnswer, last *boardFacts, t turn, keepSlot func() bool,
) *boardFacts {
	visits, version, _ := s.visits.Project(ctx, project) // without visits, what was known of them is shown
	keepSlot()
	if t != turnFirst {
		s.deriving <- struct{}{}
		defer func() { <-s.deriving }()
	}
	return derive(visits, version, project, answer, last)
}

// finish records what a task has found out, and begins what must follow it. The caller holds mu.
func (s *fetcher) finish(state *pipelineState, task *pipelineTask, after result, fetched bool) {
	if state.known != after.known || (state.err == nil) != (after.err == nil) ||
		domain.MessageOf(state.err) != domain.MessageOf(after.err) {
		s.changes++
		s.news.Wake(state.project.Name, "")
	}
	s.logReachability(state, after.err)
	if after.err != nil && state.err == nil {
		state.failed = clock.Now()
	}
	state.known, state.err = after.known, after.err
	if fetched {
		state.askedAt, state.took = task.began, time.Since(task.began)
	}
	if fetched && state.err == nil {
		state.seen = clock.Now()
		if s.isUnobserved(state) {
			s.observe(state)
		}
	}
	if state.askedAt.Before(state.wanted) && state.err == nil {
		s.begin(state, turnNext)
	}
	s.refetchLater(state)
}

// observe has visits observe the known pipeline. The caller holds mu.
func (s *fetcher) observe(state *pipelineState) {
	answer, generation := state.known.answer, s.visits.Generation()
	queued := s.visits.Observe(state.project.Name, answer, state.askedAt, func(settled bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		state.observing = nil
		if settled {
			state.observed, state.observedIn = answer, generation
		} else {
			state.feed.at = time.Now() // so that it is fetched and observed again
			s.refetchLater(state)
		}
	})
	if queued {
		state.observing = answer
	}
}

// isUnobserved reports whether visits have not observed the known pipeline, for example because another gateway did
// that until now.
func (s *fetcher) isUnobserved(state *pipelineState) bool {
	return state.known.answer != nil && !state.known.answer.EventsOnly &&
		(state.observed != state.known.answer || state.observedIn != s.visits.Generation())
}

// observed reports whether visits know what stands on the project's board.
func (s *fetcher) observed(project domain.Project) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state(project)
	return state != nil && state.known.answer != nil && !s.isUnobserved(state)
}

// refetchLater fetches a project that has changed, if nobody else does, as soon as is allowed. The caller holds mu.
func (s *fetcher) refetchLater(state *pipelineState) {
	feed := &state.feed
	if feed.paused || state.task != nil || !state.askedAt.Before(feed.at) {
		return
	}
	feed.paused = true
	time.AfterFunc(time.Until(state.askedAt.Add(max(refetchPause, refetchFactor*state.took))), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		feed.paused = false
		if s.state(state.project) == state && state.askedAt.Before(feed.at) {
			state.want(feed.at)
			s.begin(state, turnBehind)
		}
	})
}

// logReachability logs when a project becomes unreachable and when it is reachable again, not each failure in between.
func (s *fetcher) logReachability(state *pipelineState, err error) {
	switch {
	case err != nil && (state.err == nil || domain.MessageOf(err) != domain.MessageOf(state.err)):
		s.log.Warn("project is unreachable", "project", state.project.Name, "url", state.project.URL, "error", err)
	case err == nil && state.err != nil:
		s.log.Info("project is reachable again", "project", state.project.Name)
	}
}
