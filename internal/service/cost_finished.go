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

// finishedStories are the stories of a project that are finished, by id, and the versions of what that was made of.
type finishedStories struct {
	made    string
	stories map[string]*finishedStory
}

type finishedStory struct {
	domain.StoryKey
	at     int64 // when it was finished, in Unix milliseconds
	usd    domain.Micros
	called bool // it has a call
}

// finishedOf are the finished stories of projects.
type finishedOf map[string]finishedStories

// of returns when a story was finished, zero if it is not.
func (f finishedOf) of(story domain.StoryKey) time.Time {
	if known := f[story.Project].stories[story.ID]; known != nil {
		return time.UnixMilli(known.at)
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
		if known.made != made {
			known = finishedStories{made, finishedIn(&boards[i], visits)}
			s.mu.Lock()
			for id, story := range known.stories {
				story.usd, story.called = s.stories[name][id]
			}
			s.ended[name] = known
			s.mu.Unlock()
		}
		finished[name] = known
	}
	return finished, nil
}

func finishedIn(p *domain.ProjectPipeline, visits *domain.ProjectVisits) map[string]*finishedStory {
	stages, finished := p.Stages, map[string]*finishedStory{}
	if len(stages) == 0 {
		stages = visits.Board()
	}
	if len(stages) == 0 {
		return finished
	}
	for story := range visits.Follow(domain.NewCourse(p.Board.Layout, stages), 0) {
		if story.Finished > 0 {
			key := domain.StoryKey{Project: p.Project, ID: story.StoryID}
			finished[story.StoryID] = &finishedStory{StoryKey: key, at: story.Finished}
		}
	}
	return finished
}

// cost returns what the stories cost in all that were finished on days and have a call.
func (f finishedOf) cost(days []time.Time) (c domain.FinishedCost) {
	from, to := days[0].UnixMilli(), days[len(days)-1].UnixMilli()
	var stories []*finishedStory
	var costs []int
	var sum domain.Micros
	for _, of := range f {
		for _, s := range of.stories {
			if s.called && s.at >= from && s.at < to {
				stories, costs, sum = append(stories, s), append(costs, int(s.usd)), sum+s.usd
			}
		}
	}
	newest := first(slices.Values(stories), domain.MaxFinishedCosts, func(a, b *finishedStory) int {
		return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.usd, a.usd), cmp.Compare(a.Project, b.Project),
			cmp.Compare(a.ID, b.ID))
	})
	c.Count = len(costs)
	c.Stories = domain.Each(newest, func(s *finishedStory) domain.CostShare {
		return domain.CostShare{
			Project: s.Project, StoryID: s.ID, Finished: time.UnixMilli(s.at), CostSum: domain.CostSum{USD: s.usd},
		}
	})
	if at, enough := flow.Percentiles(costs); enough {
		n := domain.Micros(len(costs))
		c.At, c.Mean = &at, (2*sum+n)/(2*n)
	}
	return c
}
