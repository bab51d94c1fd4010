package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
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
		if r, _ := s.Recent(ctx, domain.CostQuery{Days: domain.CostDays, Zone: zone}); r != nil {
			today.Usual = usual(r.Days[:len(r.Days)-1])
		}
		return today, nil
	})
}

// usual returns what half of the days since the first call cost, or less, 0 for too few.
func usual(days []domain.CostShare) domain.Micros {
	var costs []int
	for _, d := range days {
		if d.Calls > 0 || len(costs) > 0 {
			costs = append(costs, int(d.USD))
		}
	}
	at, _ := flow.Percentiles(costs)
	return domain.Micros(at[0])
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
