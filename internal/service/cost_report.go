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

// costCache keeps what takes long to make, by key; concurrent callers share one making. Pages ask all the time, so
// unless it was quick an answer, or a failure, is kept for some multiple of the time it took.
type costCache[T any] struct {
	quick time.Duration
	lasts bool        // answers never expire
	size  func(T) int // 1 each if nil
	most  int         // the limit on the size of all answers

	makes singleflight.Group
	mu    sync.Mutex // never held while an answer is being made
	known map[string]cachedAnswer[T]
	sizes int
}

type cachedAnswer[T any] struct {
	answer T
	err    error
	until  time.Time
	size   int
}

func (r *costCache[T]) get(ctx context.Context, about string, answer func(context.Context) (T, error)) (T, error) {
	r.mu.Lock()
	last, known := r.known[about]
	r.mu.Unlock()
	if known && (r.lasts || time.Now().Before(last.until)) {
		return last.answer, last.err
	}
	return shareCall(ctx, &r.makes, about, func(ctx context.Context) (T, error) {
		began := time.Now()
		made, err := answer(ctx)
		now := time.Now()
		if err != nil && r.lasts {
			return made, err
		}
		next := cachedAnswer[T]{made, err, now.Add(snapshotShare * (now.Sub(began) - r.quick)), 1}
		if err != nil {
			next.answer = last.answer
		} else if r.size != nil {
			next.size = r.size(made)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.sizes += next.size - r.known[about].size; r.sizes > r.most || r.known == nil {
			r.known, r.sizes = map[string]cachedAnswer[T]{}, next.size
		}
		r.known[about] = next
		return made, err
	})
}

// soon is get for a page: it waits for a limited time and then returns the last answer, or none.
func (r *costCache[T]) soon(
	ctx context.Context, patience time.Duration, about string, answer func(context.Context) (T, error),
) (T, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	made, err := r.get(limited, about, answer)
	if !errors.Is(err, context.DeadlineExceeded) && domain.CodeOf(err) != domain.Unavailable {
		return made, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[about].answer, nil
}

// todayPatience is how long a page waits for the cost of a day; part of the page asks again.
const todayPatience = 50 * time.Millisecond

// Today returns what today's calls have cost in a zone, as of a moment ago.
func (s *Costs) Today(ctx context.Context, zone *time.Location) (domain.CostsToday, error) {
	times := days(domain.CostQuery{Days: 1, Zone: zone})
	about := times[0].String()
	return s.today.soon(ctx, todayPatience, about, func(ctx context.Context) (today domain.CostsToday, err error) {
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

// usual returns the median cost of the days since the first call, 0 if they are too few.
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

// Recent is Report as of a moment ago, for a page. Its result is shared and must not be changed; it is nil while
// something that takes longer is being added up for the first time, or could not be.
func (s *Costs) Recent(ctx context.Context, q domain.CostQuery) (*domain.CostReport, error) {
	about := fmt.Sprint(q.Projects, q.Days, q.Zone, flow.Day(clock.Now().In(q.Zone)))
	return s.reports.soon(ctx, flowPatience, about, func(ctx context.Context) (*domain.CostReport, error) {
		r, err := s.Report(ctx, q)
		if err == nil { // a report does without the days before
			twice := q
			twice.Days *= 2
			times := days(twice)
			r.Before, _ = s.store.CostBetween(ctx, times[0], times[q.Days], q.Projects)
		}
		return r, err
	})
}

// Usual is what a project's stories cost that were finished in the last days.
func (s *Costs) Usual(ctx context.Context, project string) (domain.FinishedCost, error) {
	times := days(domain.CostQuery{Days: domain.FlowDays, Zone: time.UTC})
	boards, err := s.flow.boards(ctx, []string{project})
	if err != nil {
		return domain.FinishedCost{}, err
	}
	finished, err := s.finished(ctx, boards)
	return s.costOf(finished, times), err
}

// Sentence says what calls of projects, or of all if none are given, cost between two times, and what a day usually
// costs; "" without calls.
func (s *Costs) Sentence(ctx context.Context, from, to time.Time, projects []string) (string, error) {
	c, err := s.count(ctx, []time.Time{from, to}, projects)
	if err != nil || c.total.Calls == 0 {
		return "", err
	}
	said := "Cost: " + c.total.USD.Dollars() + " at list price"
	if dearest, _ := c.dearest(byStory, 1); len(dearest) > 0 && dearest[0].USD > 0 {
		key := dearest[0].Key()
		names, err := s.flow.store.StoryNames(ctx, []domain.StoryKey{key})
		if err != nil {
			return "", err
		}
		said += ", " + dearest[0].USD.Dollars() + " of it for " + cmp.Or(names[key].Name, key.ID)
	}
	q := domain.CostQuery{Projects: projects, Days: domain.CostDays, Zone: from.Location()}
	if r, _ := s.Recent(ctx, q); r != nil { // without it, the sentence leaves that out
		if usd := usual(r.Days[:len(r.Days)-1]); usd > 0 {
			said += "; a day usually costs " + usd.Dollars()
		}
	}
	return said, nil
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
		Finished: s.costOf(finished, times),
	}
	for story, share := range c.shares[byStory] {
		if !finished.of(story).IsZero() {
			r.Done.Plus(share.CostSum)
		}
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
	names, err := s.flow.store.StoryNames(ctx, domain.Map(r.Stories, domain.CostShare.Key))
	for i, share := range r.Stories {
		r.Stories[i].Name, r.Stories[i].Finished = names[share.Key()].Name, finished.of(share.Key())
	}
	return r, err
}
