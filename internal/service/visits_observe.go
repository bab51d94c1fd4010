package service

import (
	"context"
	"errors"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

const (
	// observedAtOnce is how many stories one transaction changes: about 10 ms, for which events wait.
	observedAtOnce = 200
	// observationBurst and observationRate limit how many changes of a project are stored that no event tells of: at
	// once, twice as many as a pipeline has stories, and then so many a second.
	observationBurst, observationRate = 40_000, 2
)

// observations are the pipelines to be observed, the newest of each project. Visits.mu guards them.
type observations struct {
	queue map[string]observation
	order []string
	news  chan struct{} // of capacity 1; holds a value when there is something in the queue
}

// add queues an observation, unless a newer one is queued and replace is not set.
func (o *observations) add(project string, next observation, replace bool) {
	_, queued := o.queue[project]
	if !queued {
		o.order = append(o.order, project)
	}
	if !queued || replace {
		o.queue[project] = next
	}
	select {
	case o.news <- struct{}{}:
	default:
	}
}

func (o *observations) next() (project string, next observation, ok bool) {
	if len(o.order) == 0 {
		o.order = nil // frees the underlying array
		return "", next, false
	}
	project = o.order[0]
	next = o.queue[project]
	o.order = o.order[1:]
	delete(o.queue, project)
	return project, next, true
}

type observation struct {
	answer *domain.PipelineAnswer
	asked  time.Time
	done   func(settled bool)
}

type observationCredit struct {
	spent float64
	at    time.Time
}

// spend reports whether there is credit, and spends n of it.
func (c *observationCredit) spend(n int, now time.Time) bool {
	c.spent = max(0, c.spent-observationRate*now.Sub(c.at).Seconds())
	c.at = now
	if c.spent >= observationBurst {
		return false
	}
	c.spent += float64(n)
	return true
}

// Observe has Run apply a project's pipeline, whose fetch began at asked, if this gateway leads, and then call done:
// settled is false if newer events contradict it, or if it could not be stored; then the pipeline must be fetched and
// observed again. Observe returns false if this gateway does not lead.
func (s *Visits) Observe(
	project string, answer *domain.PipelineAnswer, asked time.Time, done func(settled bool),
) (queued bool) {
	if !s.leader.Leads() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observed.add(project, observation{answer, clock.Of(asked), done}, true)
	return true
}

// observeQueued observes what is queued, a few stories of each project in turn, until ctx ends.
func (s *Visits) observeQueued(ctx context.Context) error {
	for ctx.Err() == nil {
		s.mu.Lock()
		project, next, ok := s.observed.next()
		s.mu.Unlock()
		if !ok {
			select {
			case <-s.observed.news:
			case <-ctx.Done():
			}
			continue
		}
		began := time.Now()
		more, settled, err := s.observe(ctx, project, next)
		if more && err == nil {
			s.mu.Lock()
			s.observed.add(project, next, false)
			s.mu.Unlock()
		} else {
			next.done(settled && err == nil)
		}
		if err != nil && domain.CodeOf(err) != domain.Unavailable { // the store logs that
			return supervise.UnlessEnded(ctx, err)
		}
		supervise.Sleep(ctx, min(time.Since(began), maxStepPause)) // so that other writes fit in between
	}
	return nil
}

// observe applies some of an observation, and reports whether there is more of it.
func (s *Visits) observe(ctx context.Context, project string, o observation) (more, settled bool, err error) {
	token, leads := s.leader.Token()
	if _, registered := s.projects.Registry().Find(project); !registered || !leads {
		return false, true, nil
	}
	known, err := s.Project(ctx, project)
	if err != nil {
		return false, false, err
	}
	seen, settled := known.Differing(o.answer.Stages, o.answer.Note == "", o.asked)
	if len(seen) == 0 {
		return false, settled, nil
	}
	more = len(seen) > observedAtOnce
	seen = seen[:min(len(seen), observedAtOnce)]
	s.mu.Lock()
	granted := s.state(project).credit.spend(len(seen), time.Now())
	s.mu.Unlock()
	if !granted {
		return false, false, nil
	}
	changed, agreed, err := s.store.ObserveVisits(ctx, token, domain.Observation{
		Project: project, Seen: seen, Asked: o.asked, Now: clock.Now(),
	})
	if errors.Is(err, domain.ErrNotLeader) {
		return false, true, nil
	}
	s.apply(changed)
	return more && len(changed) > 0, settled && agreed && !more, err
}
