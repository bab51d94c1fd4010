package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/flow"
)

// costCount adds up calls by what they are about.
type costCount struct {
	shares   map[string]map[string]*domain.CostShare // by kind, and by what one is about
	sessions map[domain.StoryKey]map[string]bool
	report   domain.CostReport
}

func (c *costCount) add(kind, about string, sum domain.CallSum, share domain.CostShare) {
	if c.shares[kind] == nil {
		c.shares[kind] = map[string]*domain.CostShare{}
	}
	known := c.shares[kind][about]
	if known == nil {
		known = &share
		c.shares[kind][about] = known
	}
	known.Plus(sum.CostSum)
	if sum.Last.After(known.Last) {
		known.Last = sum.Last
	}
}

func (c *costCount) count(s domain.CallSum) {
	c.report.Total.Plus(s.CostSum)
	c.report.Days[s.Span].Plus(s.CostSum)
	c.add("model", s.Model, s, domain.CostShare{Name: s.Model})
	c.add("client", s.Client, s, domain.CostShare{Name: s.Client})
	c.add("sender", s.Holder, s, domain.CostShare{Name: s.By, AgentID: s.AgentID})
	if s.ID == "" {
		c.report.Without.Plus(s.CostSum)
		about := domain.EncodeJSON([]string{s.Project, s.Client, s.Session, s.Holder})
		c.add("session", string(about), s, domain.CostShare{
			Name: s.By, Project: s.Project, Client: s.Client, Session: s.Session,
		})
		return
	}
	c.add("story", string(domain.EncodeJSON(s.StoryKey)), s, domain.CostShare{Project: s.Project, StoryID: s.ID})
	if s.Session != "" {
		if c.sessions[s.StoryKey] == nil {
			c.sessions[s.StoryKey] = map[string]bool{}
		}
		c.sessions[s.StoryKey][s.Session] = true
	}
}

// dearest returns the shares of a kind, the dearest first, at most most, and how many others there are.
func (c *costCount) dearest(kind string, most int) (list []domain.CostShare, more int) {
	for _, share := range c.shares[kind] {
		list = append(list, *share)
	}
	slices.SortFunc(list, domain.DearestShare)
	n := min(len(list), most)
	return list[:n], len(list) - n
}

// days are the times at which the days of a query begin, and the last one ends.
func days(q domain.CostQuery) (times []time.Time) {
	today := flow.Day(clock.Now().In(q.Zone))
	for day := today - q.Days + 1; day <= today+1; day++ {
		times = append(times, flow.Begins(day, q.Zone))
	}
	return times
}

// count adds up the calls of projects, of all without any, between times.
func (s *Costs) count(ctx context.Context, times []time.Time, projects []string) (*costCount, error) {
	c := &costCount{
		shares: map[string]map[string]*domain.CostShare{}, sessions: map[domain.StoryKey]map[string]bool{},
		report: domain.CostReport{Budgets: s.budgets.limits},
	}
	for _, at := range times[1:] {
		c.report.Days = append(c.report.Days, domain.CostShare{Name: flow.DayName(flow.Day(at) - 1)})
	}
	return c, s.store.EachCost(ctx, times, projects, c.count)
}

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
		today.CostSum, today.Agents = c.report.Total, map[string]domain.CostSum{}
		for _, share := range c.shares["sender"] {
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

// Usual is Report about the last days of a project, for the pages of its stories, as it was a moment ago.
func (s *Costs) Usual(ctx context.Context, project string) (*domain.CostReport, error) {
	q := domain.CostQuery{Projects: []string{project}, Days: domain.FlowDays, Zone: time.UTC}
	return s.usual.tell(ctx, project, func(ctx context.Context) (*domain.CostReport, error) { return s.Report(ctx, q) })
}

// Sentence says what calls of projects, of all without any, have cost between two times, "" without calls.
func (s *Costs) Sentence(ctx context.Context, from, to time.Time, projects []string) (string, error) {
	c, err := s.count(ctx, []time.Time{from, to}, projects)
	if err != nil || c.report.Total.Calls == 0 {
		return "", err
	}
	said := "Cost: " + c.report.Total.USD.Dollars() + " at list price"
	dearest, _ := c.dearest("story", 1)
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
	r, most := &c.report, domain.MaxCosts
	r.Models, _ = c.dearest("model", most)
	r.Clients, _ = c.dearest("client", most)
	r.Agents, _ = c.dearest("sender", most)
	r.Sessions, _ = c.dearest("session", domain.MaxCostSessions)
	if q.All {
		most = len(c.shares["story"])
	}
	for _, share := range c.shares["story"] {
		if share.Finished = finished[share.Key()]; !share.Finished.IsZero() {
			r.Done.Plus(share.CostSum)
		}
	}
	r.Stories, r.More = c.dearest("story", most)
	r.Finished = s.finishedCost(finished, times[0], times[len(times)-1])
	for i := range r.Agents {
		if label := s.claims.agents.label(r.Agents[i].AgentID); label != "" {
			r.Agents[i].Name = label
		}
	}
	names, err := s.flow.store.StoryNames(ctx, domain.Each(r.Stories, domain.CostShare.Key))
	for i := range r.Stories {
		key := r.Stories[i].Key()
		r.Stories[i].Name, r.Stories[i].Sessions = names[key].Name, len(c.sessions[key])
	}
	return r, err
}

// finished returns when the stories of boards were finished that are and have a call.
func (s *Costs) finished(ctx context.Context, boards []domain.ProjectPipeline) (map[domain.StoryKey]time.Time, error) {
	names := domain.Each(boards, func(p domain.ProjectPipeline) string { return p.Project })
	if err := s.flow.visits.LoadWhole(ctx, flowPatience, names...); err != nil {
		return nil, err
	}
	finished := map[domain.StoryKey]time.Time{}
	for i := range boards {
		visits, _ := s.flow.visits.now(names[i])
		stages := boards[i].Stages
		if len(stages) == 0 {
			stages = visits.Board()
		}
		if len(stages) == 0 {
			continue
		}
		for story := range visits.Follow(domain.NewCourse(boards[i].Board.Layout, stages), 0) {
			if story.Finished > 0 && s.Of(names[i], story.StoryID) != nil {
				finished[domain.StoryKey{Project: names[i], ID: story.StoryID}] = time.UnixMilli(story.Finished)
			}
		}
	}
	return finished, nil
}

// finishedCost returns what the stories cost in all that were finished between two times and have a call.
func (s *Costs) finishedCost(finished map[domain.StoryKey]time.Time, from, to time.Time) (f domain.FinishedCost) {
	var costs []int
	var sum domain.Micros
	for key, at := range finished {
		if usd := s.Of(key.Project, key.ID); usd != nil && !at.Before(from) && at.Before(to) { // it may just be forgotten
			costs = append(costs, int(*usd))
			sum += *usd
			f.Stories = append(f.Stories, domain.CostShare{
				Project: key.Project, StoryID: key.ID, Finished: at, CostSum: domain.CostSum{USD: *usd},
			})
		}
	}
	slices.SortFunc(f.Stories, func(a, b domain.CostShare) int {
		return cmp.Or(b.Finished.Compare(a.Finished), domain.DearestShare(a, b))
	})
	if at, enough := flow.Percentiles(costs); enough {
		n := domain.Micros(len(costs))
		f.At, f.Mean = &at, (2*sum+n)/(2*n)
	}
	return f
}
