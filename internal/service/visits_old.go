package service

import (
	"context"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/supervise"
)

const (
	// visitLife is how long visits are kept after their end, and maxKeptVisits how many of a project, the newest: charts
	// need 90 days.
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

// RemoveOld removes old visits if this gateway leads.
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
