package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// Visits are the stages in which the stories of all projects are and have been. The store has all of them; memory has
// what pages need of the projects that were asked for.
type Visits struct {
	visitTable
	observed observations
}

const (
	// visitLife is how long visits are kept after their end, and maxKeptVisits how many of a project's newest: charts
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
	before := clock.Now().Add(-visitLife)
	for _, project := range projects {
		for removed := stepSize; removed == stepSize; {
			err := step(ctx, 4, func() (err error) {
				removed, err = s.store.RemoveVisits(ctx, token, project, before, maxKeptVisits, stepSize)
				return err
			})
			if err != nil {
				return err
			}
			if removed > 0 {
				s.reread(project)
			}
		}
	}
	return nil
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
	s.observed.add(observation{project: project, answer: answer, asked: clock.Of(asked), done: done}, true)
	return true
}

func (s *Visits) observeQueued(ctx context.Context) error {
	for ctx.Err() == nil {
		began := time.Now()
		batch, err := s.nextObservations(ctx)
		if err == nil && len(batch) == 0 {
			select {
			case <-s.observed.news:
			case <-ctx.Done():
			}
			continue
		}
		if failed := s.observe(ctx, batch); failed != nil {
			err = failed
		}
		if err != nil && domain.CodeOf(err) != domain.Unavailable { // the store logs that
			return supervise.UnlessEnded(ctx, err)
		}
		supervise.Sleep(ctx, min(time.Since(began), maxStepPause)) // so that other writes fit in between
	}
	return nil
}

// nextObservations takes from the queue what one transaction stores, a few stories of each project. It drops pipelines
// that show nothing but what the visits say.
func (s *Visits) nextObservations(ctx context.Context) (batch []observation, err error) {
	for room := observedAtOnce; room > 0 && err == nil; {
		s.mu.Lock()
		o, ok := s.observed.next()
		s.mu.Unlock()
		if !ok {
			break
		}
		if err = s.compare(ctx, &o, room); err != nil || len(o.seen) == 0 {
			o.done(o.settled && err == nil)
			continue
		}
		room -= len(o.seen)
		batch = append(batch, o)
	}
	return batch, err
}

// compare finds up to limit stories for which a pipeline differs from the visits.
func (s *Visits) compare(ctx context.Context, o *observation, limit int) error {
	_, registered := s.projects.Registry().Find(o.project)
	if o.settled = !registered || !s.leader.Leads(); o.settled {
		return nil
	}
	known, _, err := s.Project(ctx, o.project)
	if err != nil {
		return err
	}
	o.seen, o.settled = known.Differing(o.answer, o.asked, limit)
	if o.more = len(o.seen) > limit; o.more {
		o.seen = o.seen[:limit]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(o.seen) > 0 && !s.state(o.project).credit.spend(len(o.seen), observationBurst, time.Now()) {
		o.seen, o.settled = nil, false
	}
	return nil
}

func (s *Visits) observe(ctx context.Context, batch []observation) error {
	if len(batch) == 0 {
		return nil
	}
	token, _ := s.leader.Token()
	var observed []domain.Observation
	for _, o := range batch {
		observed = append(observed, domain.Observation{Project: o.project, Seen: o.seen, Asked: o.asked, Now: clock.Now()})
	}
	changed, contradicted, err := s.store.ObserveVisits(ctx, token, observed...)
	s.apply(changed)
	advanced := map[string]bool{}
	for _, v := range changed {
		advanced[v.Project] = true
	}
	for _, o := range batch {
		switch {
		case errors.Is(err, domain.ErrNotLeader):
			o.done(true)
		case o.more && advanced[o.project]:
			s.mu.Lock()
			s.observed.add(o, false)
			s.mu.Unlock()
		default:
			o.done(err == nil && o.settled && !o.more && !slices.Contains(contradicted, o.project))
		}
	}
	if errors.Is(err, domain.ErrNotLeader) {
		return nil
	}
	return err
}

const (
	// observedAtOnce is how many stories one transaction changes, of one board or many: about 10 ms, for which events
	// wait.
	observedAtOnce = 200
)

// observations are the pipelines to be observed, the newest of each project. Visits.mu guards them.
type observations struct {
	queue map[string]observation
	news  chan struct{} // of capacity 1; holds a value when there is something in the queue
}

func (o *observations) add(next observation, replace bool) {
	if _, queued := o.queue[next.project]; !queued || replace {
		o.queue[next.project] = next
	}
	select {
	case o.news <- struct{}{}:
	default:
	}
}

func (o *observations) next() (next observation, ok bool) {
	for _, next = range o.queue {
		delete(o.queue, next.project)
		return next, true
	}
	return next, false
}

type observation struct {
	project string
	answer  *domain.PipelineAnswer
	asked   time.Time
	done    func(settled bool)

	seen    []domain.Sighting // to be stored next
	more    bool              // there are more
	settled bool              // newer events contradict none of it
}
