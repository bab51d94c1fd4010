package service

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/flow"
)

// endedStories are when a project's stories were finished, by id, in Unix milliseconds, and the versions of the data
// behind that.
type endedStories struct {
	made string
	at   map[string]int64
}

// finishedByProject are the finished stories of projects.
type finishedByProject map[string]endedStories

// of returns when a story was finished, zero if it is not.
func (f finishedByProject) of(story domain.StoryKey) time.Time {
	if at, ended := f[story.Project].at[story.ID]; ended {
		return time.UnixMilli(at)
	}
	return time.Time{}
}

// finished returns the finished stories of boards.
func (s *Costs) finished(ctx context.Context, boards []domain.ProjectPipeline) (finishedByProject, error) {
	names := domain.Map(boards, func(p domain.ProjectPipeline) string { return p.Project })
	if err := s.flow.visits.LoadWhole(ctx, flowPatience, names...); err != nil {
		return nil, err
	}
	finished := finishedByProject{}
	for i, name := range names {
		visits, version := s.flow.visits.now(name)
		made := fmt.Sprint(version, boards[i].Version)
		s.mu.Lock()
		known := s.ended[name]
		s.mu.Unlock()
		if known.made != made {
			known = endedStories{made, endedIn(&boards[i], visits)}
			s.mu.Lock()
			s.ended[name] = known
			s.mu.Unlock()
		}
		finished[name] = known
	}
	return finished, nil
}

func endedIn(p *domain.ProjectPipeline, visits *domain.ProjectVisits) map[string]int64 {
	stages, ended := p.Stages, map[string]int64{}
	if len(stages) == 0 {
		stages = visits.Board()
	}
	if len(stages) == 0 {
		return ended
	}
	for story := range visits.Follow(domain.NewWorkflow(p.Board.Layout, stages), 0) {
		if story.Finished > 0 {
			ended[story.StoryID] = story.Finished
		}
	}
	return ended
}

// costOf returns the total cost of the stories that were finished on days and have a call.
func (s *Costs) costOf(finished finishedByProject, days []time.Time) (c domain.FinishedCost) {
	from, to := days[0].UnixMilli(), days[len(days)-1].UnixMilli()
	var costs []int
	var sum domain.Micros
	each := func(yield func(domain.CostShare) bool) {
		for project, of := range finished {
			for id, at := range of.at {
				usd, called := s.stories[project][id]
				if at < from || at >= to || !called {
					continue
				}
				costs, sum = append(costs, int(usd)), sum+usd
				if !yield(domain.CostShare{
					Project: project, StoryID: id, Finished: time.UnixMilli(at), CostSum: domain.CostSum{USD: usd},
				}) {
					return
				}
			}
		}
	}
	s.mu.Lock()
	c.Stories = first(each, domain.MaxFinishedCosts, func(a, b domain.CostShare) int {
		return cmp.Or(b.Finished.Compare(a.Finished), domain.DearestShare(&a, &b))
	})
	s.mu.Unlock()
	c.Count = len(costs)
	if at, enough := flow.Percentiles(costs); enough {
		n := domain.Micros(len(costs))
		c.At, c.Mean = &at, (2*sum+n)/(2*n)
	}
	return c
}
