package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/flow"
)

// finishedStories are the stories of a project that are finished, and the versions of what that was made of.
type finishedStories struct {
	made  string
	at    map[string]int64 // when they were finished, by id, in Unix milliseconds
	costs []finishedCost   // of those that have a call
}

type finishedCost struct {
	project, id string
	at          int64
	usd         domain.Micros
}

// finishedOf are the finished stories of projects.
type finishedOf map[string]*finishedStories

// of returns when a story was finished, zero if it is not.
func (f finishedOf) of(story domain.StoryKey) time.Time {
	if known := f[story.Project]; known != nil && known.at[story.ID] > 0 {
		return time.UnixMilli(known.at[story.ID])
	}
	return time.Time{}
}

// finished returns the finished stories of boards.
func (s *Costs) finished(ctx context.Context, boards []domain.ProjectPipeline) (finishedOf, error) {
	names := domain.Each(boards, func(p domain.ProjectPipeline) string { return p.Project })
	if err := s.flow.visits.LoadWhole(ctx, flowPatience, names...); err != nil {
		return nil, err
	}
	finished := finishedOf{}
	for i, name := range names {
		visits, version := s.flow.visits.now(name)
		made := fmt.Sprint(version, boards[i].Version, s.version(name))
		s.mu.Lock()
		known := s.ended[name]
		s.mu.Unlock()
		if known == nil || known.made != made {
			known = &finishedStories{made: made, at: finishedIn(&boards[i], visits)}
			s.mu.Lock()
			for id, at := range known.at {
				if usd, called := s.stories[name][id]; called {
					known.costs = append(known.costs, finishedCost{name, id, at, usd})
				}
			}
			s.ended[name] = known
			s.mu.Unlock()
		}
		finished[name] = known
	}
	return finished, nil
}

func finishedIn(p *domain.ProjectPipeline, visits *domain.ProjectVisits) map[string]int64 {
	stages, ended := p.Stages, map[string]int64{}
	if len(stages) == 0 {
		stages = visits.Board()
	}
	if len(stages) == 0 {
		return ended
	}
	for story := range visits.Follow(domain.NewCourse(p.Board.Layout, stages), 0) {
		if story.Finished > 0 {
			ended[story.StoryID] = story.Finished
		}
	}
	return ended
}

// done returns what a count has for stories that are finished. Of its earlier part that is counted once.
func (s *Costs) done(c *costCount, finished finishedOf) (sum domain.CostSum) {
	for project, stories := range finished {
		s.mu.Lock()
		known := c.earlier.done[project]
		s.mu.Unlock()
		if known.of != stories && c.earlier.done != nil {
			known = doneCost{of: stories}
			for _, story := range stories.costs {
				if share := c.earlier.shares[byStory][domain.StoryKey{Project: project, ID: story.id}]; share != nil {
					known.Plus(share.CostSum)
				}
			}
			s.mu.Lock()
			c.earlier.done[project] = known
			s.mu.Unlock()
		}
		sum.Plus(known.CostSum)
	}
	for story, share := range c.shares[byStory] {
		if !finished.of(story).IsZero() {
			sum.Plus(share.CostSum)
		}
	}
	return sum
}

// cost returns what the stories cost in all that were finished on days and have a call.
func (f finishedOf) cost(days []time.Time) (c domain.FinishedCost) {
	var costs []int
	var sum domain.Micros
	var newest []finishedCost
	from, to, oldest := days[0].UnixMilli(), days[len(days)-1].UnixMilli(), int64(0)
	cut := func() {
		slices.SortFunc(newest, func(a, b finishedCost) int {
			return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.usd, a.usd), cmp.Compare(a.project, b.project),
				cmp.Compare(a.id, b.id))
		})
		if len(newest) > domain.MaxFinishedCosts {
			newest = newest[:domain.MaxFinishedCosts]
			oldest = newest[len(newest)-1].at
		}
	}
	for _, stories := range f {
		for _, s := range stories.costs {
			if s.at < from || s.at >= to {
				continue
			}
			costs = append(costs, int(s.usd))
			if sum += s.usd; s.at >= oldest {
				newest = append(newest, s)
			}
		}
		if len(newest) > 2*domain.MaxFinishedCosts {
			cut()
		}
	}
	cut()
	c.Count = len(costs)
	c.Stories = domain.Each(newest, func(s finishedCost) domain.CostShare {
		return domain.CostShare{
			Project: s.project, StoryID: s.id, Finished: time.UnixMilli(s.at), CostSum: domain.CostSum{USD: s.usd},
		}
	})
	if at, enough := flow.Percentiles(costs); enough {
		n := domain.Micros(len(costs))
		c.At, c.Mean = &at, (2*sum+n)/(2*n)
	}
	return c
}
