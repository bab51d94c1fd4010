package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/flow"
)

// recent is what was last told of costs, by what about. Pages ask all the time, so an answer holds for some times as
// long as it took, unless it was quick; a failure, too.
type recent[T any] struct {
	quick time.Duration
	makes singleflight.Group

	mu    sync.Mutex // never held while an answer is made
	known map[string]recentAnswer[T]
}

type recentAnswer[T any] struct {
	answer T
	err    error
	until  time.Time
}

func (r *recent[T]) tell(ctx context.Context, about string, answer func(context.Context) (T, error)) (T, error) {
	r.mu.Lock()
	last := r.known[about]
	r.mu.Unlock()
	if time.Now().Before(last.until) {
		return last.answer, last.err
	}
	return shared(ctx, &r.makes, about, func(ctx context.Context) (T, error) {
		began := time.Now()
		made, err := answer(ctx)
		now := time.Now()
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.known) >= maxReports || r.known == nil {
			r.known = map[string]recentAnswer[T]{}
		}
		r.known[about] = recentAnswer[T]{made, err, now.Add(snapshotShare * (now.Sub(began) - r.quick))}
		return made, err
	})
}

// Today returns what calls of today have cost in a zone, as it was a moment ago.
func (s *Costs) Today(ctx context.Context, zone *time.Location) (domain.CostsToday, error) {
	times := days(domain.CostQuery{Days: 1, Zone: zone})
	return s.today.tell(ctx, times[0].String(), func(ctx context.Context) (today domain.CostsToday, err error) {
		c, err := s.count(ctx, times, nil)
		if err != nil {
			return today, err
		}
		today.CostSum, today.Agents = c.total, map[string]domain.CostSum{}
		for _, share := range c.shares[bySender] {
			if share.AgentID != "" {
				today.Agents[share.AgentID] = share.CostSum
			}
		}
		return today, nil
	})
}

// Recent is Report as it was a moment ago, for a page. What it returns is shared and must not be changed; it is nil
// while what takes longer is being added up, or could not be.
func (s *Costs) Recent(ctx context.Context, q domain.CostQuery) (*domain.CostReport, error) {
	about := fmt.Sprint(q.Projects, q.Days, q.Zone, flow.Day(clock.Now().In(q.Zone)))
	limited, cancel := context.WithTimeout(ctx, flowPatience)
	defer cancel()
	report, err := s.reports.tell(limited, about, func(ctx context.Context) (*domain.CostReport, error) {
		return s.Report(ctx, q)
	})
	if errors.Is(err, context.DeadlineExceeded) || domain.CodeOf(err) == domain.Unavailable {
		return nil, nil
	}
	return report, err
}

// Usual is what the stories of a project cost that were finished in the last days.
func (s *Costs) Usual(ctx context.Context, project string) (domain.FinishedCost, error) {
	times := days(domain.CostQuery{Days: domain.FlowDays, Zone: time.UTC})
	boards, err := s.flow.boards(ctx, []string{project})
	if err != nil {
		return domain.FinishedCost{}, err
	}
	finished, err := s.finished(ctx, boards)
	return finished.cost(times), err
}

// Sentence says what calls of projects, of all without any, have cost between two times, "" without calls.
func (s *Costs) Sentence(ctx context.Context, from, to time.Time, projects []string) (string, error) {
	c, err := s.count(ctx, []time.Time{from, to}, projects)
	if err != nil || c.total.Calls == 0 {
		return "", err
	}
	said := "Cost: " + c.total.USD.Dollars() + " at list price"
	dearest, _ := c.dearest(byStory, 1)
	if len(dearest) == 0 || dearest[0].USD == 0 {
		return said, nil
	}
	key := dearest[0].Key()
	names, err := s.flow.store.StoryNames(ctx, []domain.StoryKey{key})
	return said + ", " + dearest[0].USD.Dollars() + " of it for " + cmp.Or(names[key].Name, key.ID), err
}

// Report returns what calls cost. The query's values must be in their ranges. It returns NotFound for an unknown
// project.
func (s *Costs) Report(ctx context.Context, q domain.CostQuery) (*domain.CostReport, error) {
	boards, err := s.flow.boards(ctx, q.Projects)
	if err != nil {
		return nil, err
	}
	times := days(q)
	c, err := s.count(ctx, times, q.Projects)
	if err != nil {
		return nil, err
	}
	finished, err := s.finished(ctx, boards)
	if err != nil {
		return nil, err
	}
	r := &domain.CostReport{
		Total: c.total, Days: c.days, Without: c.without, Budgets: s.budgets.limits,
		Finished: finished.cost(times), Done: s.done(c, finished),
	}
	most := domain.MaxCosts
	r.Models, _ = c.dearest(byModel, most)
	r.Clients, _ = c.dearest(byClient, most)
	r.Agents, _ = c.dearest(bySender, most)
	for i, share := range r.Agents {
		r.Agents[i].Name = cmp.Or(s.claims.agents.label(share.AgentID), share.Name)
	}
	r.Sessions, _ = c.dearest(bySession, domain.MaxCostSessions)
	if q.All {
		most = math.MaxInt32
	}
	r.Stories, r.More = c.dearest(byStory, most)
	names, err := s.flow.store.StoryNames(ctx, domain.Each(r.Stories, domain.CostShare.Key))
	for i, share := range r.Stories {
		r.Stories[i].Name, r.Stories[i].Finished = names[share.Key()].Name, finished.of(share.Key())
	}
	return r, err
}

// finishedStories are the stories of a project that are finished, and the versions of what that was made of.
type finishedStories struct {
	made  string
	at    map[string]int64 // when they were finished, by id, in Unix milliseconds
	costs []finishedCost   // of those that have a call
}

type finishedCost struct {
	id  string
	at  int64
	usd domain.Micros
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
					known.costs = append(known.costs, finishedCost{id, at, usd})
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

// done returns what a count has for stories that are finished.
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
	from, to, oldest := days[0].UnixMilli(), days[len(days)-1].UnixMilli(), int64(0)
	cut := func() {
		slices.SortFunc(c.Stories, func(a, b domain.CostShare) int {
			if order := b.Finished.Compare(a.Finished); order != 0 {
				return order
			}
			return domain.DearestShare(a, b)
		})
		if len(c.Stories) > domain.MaxFinishedCosts {
			c.Stories = c.Stories[:domain.MaxFinishedCosts]
			oldest = c.Stories[len(c.Stories)-1].Finished.UnixMilli()
		}
	}
	for project, stories := range f {
		for _, s := range stories.costs {
			if s.at < from || s.at >= to {
				continue
			}
			costs = append(costs, int(s.usd))
			if sum += s.usd; s.at >= oldest {
				c.Stories = append(c.Stories, domain.CostShare{
					Project: project, StoryID: s.id, Finished: time.UnixMilli(s.at), CostSum: domain.CostSum{USD: s.usd},
				})
			}
		}
		if len(c.Stories) > 2*domain.MaxFinishedCosts {
			cut()
		}
	}
	cut()
	c.Count = len(costs)
	if at, enough := flow.Percentiles(costs); enough {
		n := domain.Micros(len(costs))
		c.At, c.Mean = &at, (2*sum+n)/(2*n)
	}
	return c
}
