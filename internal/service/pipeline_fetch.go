package service

import (
	"context"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// await waits until these projects are current, or until there is no more need to wait.
func (s *Pipelines) await(ctx context.Context, age pipelineAge, asked ...*pipelineState) {
	ctx, cancel := context.WithTimeout(ctx, s.budget(asked, age))
	defer cancel()
	patience := time.NewTimer(pipelineBudget)
	defer patience.Stop()
	for _, state := range asked {
		s.awaitOne(ctx, state, age.oldest, patience)
	}
}

// budget returns how long to wait for these projects, which is less if there is a usable state of all of them.
func (s *Pipelines) budget(awaited []*pipelineState, age pipelineAge) time.Duration {
	if age.trusted == 0 {
		return pipelineBudget
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range awaited {
		if state.known == nil || state.err == nil && state.isStale(age) {
			return pipelineBudget
		}
	}
	return knownBudget
}

// awaitOne returns when a fetch that began at or after oldest has ended, when there is no need to wait, or when ctx ends. It uses
// the timer.
func (s *Pipelines) awaitOne(ctx context.Context, state *pipelineState, oldest time.Time, timer *time.Timer) {
	for ctx.Err() == nil {
		s.mu.Lock()
		task, failed := state.task, state.err != nil
		done := task == nil || failed || !state.askedAt.Before(oldest) && !s.isOutdated(state)
		var began time.Time
		if task != nil {
			began = task.began
		}
		s.mu.Unlock()
		if done {
			return
		}
		patience := pipelineBudget
		if !began.IsZero() {
			patience -= time.Since(began)
		}
		timer.Reset(patience)
		select {
		case <-task.done:
		case <-timer.C:
			return
		case <-ctx.Done():
		}
	}
}

// want makes a fetch necessary that begins at or after oldest: if the current one began earlier, another follows it.
func (state *pipelineState) want(oldest time.Time) {
	if state.wanted.Before(oldest) {
		state.wanted = oldest
	}
}

// begin queues what is to be done for a project, unless it is queued or running. What failed last has its turn behind the others.
// The caller holds mu.
func (s *Pipelines) begin(state *pipelineState, t turn) {
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
	s.queue.add(func() { s.work(state, task) }, t)
}

// result is what a task has found out.
type result struct {
	known *derived
	err   error
}

// work fetches a project's pipeline, or only derives it again if nobody wants a newer one. It outlives the request that caused it,
// and ends within the limits of ProjectServers.
func (s *Pipelines) work(state *pipelineState, task *pipelineTask) {
	s.mu.Lock()
	if !task.began.IsZero() {
		s.mu.Unlock()
		return
	}
	task.began = time.Now()
	fetches := state.askedAt.Before(state.wanted) || state.known == nil
	before := result{state.known, state.err}
	registered := s.state(state.project) == state
	s.mu.Unlock()
	after := before
	if registered {
		err := supervise.Call(func() (err error) {
			after, err = s.renewed(state.project, before, task.began, fetches)
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

// renewed returns what is known of a project after fetching its pipeline or, without that, after deriving it again.
func (s *Pipelines) renewed(project domain.Project, r result, began time.Time, fetches bool) (result, error) {
	ctx := context.Background()
	if !fetches {
		r.known = derive(ctx, s.visits, project.Name, r.known.answer, r.known.raw, r.known)
		return r, nil
	}
	var known *domain.PipelineAnswer
	var raw []byte
	if r.known != nil {
		known, raw = r.known.answer, r.known.raw
	}
	answer, err := s.servers.Pipeline(ctx, project, known)
	if err != nil {
		return r, err
	}
	if answer != known {
		raw, answer = answer.Raw, answer.WithoutRaw() // only the text with times is kept
	}
	if answer != known || r.known.isOutdated(s.visits.Version(project.Name), clock.Now()) {
		r.known = derive(ctx, s.visits, project.Name, answer, raw, r.known)
	}
	return r, nil
}

// finish records what a task has found out, and begins what must follow it. The caller holds mu.
func (s *Pipelines) finish(state *pipelineState, task *pipelineTask, after result, fetched bool) {
	if state.known != after.known || (state.err == nil) != (after.err == nil) || domain.MessageOf(state.err) != domain.MessageOf(after.err) {
		s.changes++
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

// observe has the known pipeline observed by visits. The caller holds mu.
func (s *Pipelines) observe(state *pipelineState) {
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

// logReachability logs when a project becomes unreachable and when it is reachable again, not each failure in between.
func (s *Pipelines) logReachability(state *pipelineState, err error) {
	switch {
	case err != nil && (state.err == nil || domain.MessageOf(err) != domain.MessageOf(state.err)):
		s.log.Warn("project is unreachable", "project", state.project.Name, "url", state.project.URL, "error", err)
	case err == nil && state.err != nil:
		s.log.Info("project is reachable again", "project", state.project.Name)
	}
}
