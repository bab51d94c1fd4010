package service

import (
	"context"
	"slices"
	"time"

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

// Report returns what calls cost. The query's values must be in their ranges. It returns NotFound for an unknown
// project.
func (s *Costs) Report(ctx context.Context, q domain.CostQuery) (*domain.CostReport, error) {
	boards, err := s.flow.boards(ctx, q.Projects)
	if err != nil {
		return nil, err
	}
	c := costCount{
		shares: map[string]map[string]*domain.CostShare{}, sessions: map[domain.StoryKey]map[string]bool{},
	}
	today, times := flow.Day(clock.Now().In(q.Zone)), []time.Time{}
	for day := today - q.Days + 1; day <= today+1; day++ {
		times = append(times, flow.Begins(day, q.Zone))
		if day <= today {
			c.report.Days = append(c.report.Days, domain.CostShare{Name: flow.DayName(day)})
		}
	}
	err = s.store.EachCost(ctx, times, func(sum domain.CallSum) {
		if len(q.Projects) == 0 || slices.Contains(q.Projects, sum.Project) {
			c.count(sum)
		}
	})
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
	r.Stories, r.More = c.dearest("story", most)
	r.Finished = s.finishedCost(finished, times[0], times[len(times)-1])
	for i := range r.Agents {
		if label := s.claims.agents.label(r.Agents[i].AgentID); label != "" {
			r.Agents[i].Name = label
		}
	}
	keyOf := func(share domain.CostShare) domain.StoryKey {
		return domain.StoryKey{Project: share.Project, ID: share.StoryID}
	}
	names, err := s.flow.store.StoryNames(ctx, domain.Each(r.Stories, keyOf))
	for i := range r.Stories {
		key := keyOf(r.Stories[i])
		r.Stories[i].Name, r.Stories[i].Finished = names[key].Name, finished[key]
		r.Stories[i].Sessions = len(c.sessions[key])
	}
	return r, err
}

// finished returns when the stories of boards were finished that are.
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
			if story.Finished > 0 {
				finished[domain.StoryKey{Project: names[i], ID: story.StoryID}] = time.UnixMilli(story.Finished)
			}
		}
	}
	return finished, nil
}

// finishedCost returns what the stories cost in all that were finished between two times and have a call.
func (s *Costs) finishedCost(finished map[domain.StoryKey]time.Time, from, to time.Time) *domain.FinishedCost {
	var costs []int
	var sum domain.Micros
	for key, at := range finished {
		if usd := s.Of(key.Project, key.ID); usd != nil && !at.Before(from) && at.Before(to) {
			costs = append(costs, int(*usd))
			sum += *usd
		}
	}
	at, enough := flow.Percentiles(costs)
	if !enough {
		return nil
	}
	n := domain.Micros(len(costs))
	return &domain.FinishedCost{
		Count: len(costs), P50: domain.Micros(at[0]), P85: domain.Micros(at[2]), Mean: (2*sum + n) / (2 * n),
	}
}
