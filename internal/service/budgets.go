package service

import (
	"context"
	"slices"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/flow"
)

// budgets knows which budgets have been passed.
type budgets struct {
	limits domain.Budgets                      // never change
	day    int                                 // in limits.Zone, to which the spending of projects refers
	spent  map[domain.StoryKey]domain.Spending // on stories that cost too much, and without an ID on projects
}

// readBudgets reads which budgets have been passed. The caller holds change.
func (s *Costs) readBudgets(ctx context.Context) (err error) {
	var over, today []domain.Spending
	limits := s.budgets.limits
	if limits.Story > 0 {
		over, err = s.store.StoriesOver(ctx, limits.Story)
	}
	day := flow.Day(clock.Now().In(limits.Zone))
	if limits.Day > 0 && err == nil {
		from, to := flow.Begins(day, limits.Zone), flow.Begins(day+1, limits.Zone)
		today, err = s.store.SpentBetween(ctx, from, to, limits.Day)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budgets.day, s.budgets.spent = day, map[domain.StoryKey]domain.Spending{}
	for _, spent := range slices.Concat(over, today) {
		s.budgets.spent[spent.StoryKey] = spent
	}
	return nil
}

// spend counts a new call for a story, which now costs usd in all, and reports whether to read again what has been
// passed.
func (b *budgets) spend(c domain.Call, usd domain.Micros) (passed bool) {
	story := domain.StoryKey{Project: c.Project, ID: c.StoryID}
	if b.limits.Story > 0 && usd > b.limits.Story && story.ID != "" {
		spent, known := b.spent[story]
		if spent.USD = usd; known {
			b.spent[story] = spent
		}
		passed = !known
	}
	if b.limits.Day == 0 || c.Cost == nil {
		return passed
	}
	day, story := flow.Day(c.At.In(b.limits.Zone)), domain.StoryKey{Project: c.Project}
	if day == b.day {
		spent := b.spent[story]
		spent.StoryKey, spent.USD = story, spent.USD+*c.Cost
		b.spent[story] = spent
		return passed || spent.Passed.IsZero() && spent.USD > b.limits.Day
	}
	return passed || day > b.day
}

// over returns spending beyond the budgets: in total on stories, and today's on projects, without an ID.
func (s *Costs) over() (found []domain.Spending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	today := s.budgets.limits.Day > 0 && s.budgets.day == flow.Day(clock.Now().In(s.budgets.limits.Zone))
	for _, spent := range s.budgets.spent {
		if !spent.Passed.IsZero() && (spent.ID != "" || today) {
			found = append(found, spent)
		}
	}
	return found
}

// overBudget returns an alert for each budget that has been passed: until the story is done, or the day is over.
func (s *Alerts) overBudget() (found []domain.Alert) {
	stories := map[string]map[string]domain.Spending{}
	for _, spent := range s.costs.over() {
		_, registered := s.projects.Registry().Find(spent.Project)
		switch {
		case !registered:
		case spent.ID == "":
			found = append(found, s.completeBudgetAlert(domain.Alert{Project: spent.Project}, spent))
		case stories[spent.Project] == nil:
			stories[spent.Project] = map[string]domain.Spending{spent.ID: spent}
		default:
			stories[spent.Project][spent.ID] = spent
		}
	}
	for project, over := range stories {
		stages := s.pipelines.Stages(project)
		for _, stage := range stages {
			if domain.EndsClaim(stages, stage.Name) {
				break
			}
			for i := range stage.Items {
				item := &stage.Items[i]
				if spent, known := over[item.StoryID]; known {
					a := domain.Alert{Project: project, Story: item, Stage: stage.Name, StageTitle: stage.Title()}
					found = append(found, s.completeBudgetAlert(a, spent))
				}
			}
		}
	}
	return found
}

// completeBudgetAlert fills in the alert of a budget.
func (s *Alerts) completeBudgetAlert(a domain.Alert, spent domain.Spending) domain.Alert {
	a.Kind, a.Since = domain.AlertBudget, spent.Passed
	limits := s.costs.budgets.limits
	limit, what := limits.Day, "for a day"
	if a.Story != nil {
		limit, what = limits.Story, "for a story"
	}
	usd := spent.USD.Dollars()
	if usd == limit.Dollars() {
		usd = "$" + spent.USD.String()
	}
	a.Reason = usd + " of " + limit.Dollars() + " " + what + ", at list price"
	if a.Story != nil {
		if c := s.claims.of(a.Project, a.Story.StoryID); c != nil {
			a.Agent = c.By
		}
	}
	taken, acknowledged := s.acknowledged.get(a.Key())
	acknowledged = acknowledged && !taken.EndedBy(a) && (taken.Until.IsZero() || clock.Now().Before(taken.Until))
	if a.Stops = limits.Stop && !acknowledged; !a.Stops {
		return a
	}
	switch {
	case a.Story == nil:
		a.Reason += ". Nobody gets anything new in " + a.Project
	case a.Agent != "":
		a.Reason += ". " + a.Agent + " ends what it does, then gets nothing new in " + a.Project
	}
	return a
}

// StopReason says why the actor of ctx gets no new story of a project until somebody acknowledges that a budget has
// been passed, "" if it does.
func (s *Alerts) StopReason(ctx context.Context, project string) string {
	if !s.costs.budgets.limits.Stop {
		return ""
	}
	holder := domain.ActorOf(ctx).Holder()
	for _, a := range s.overBudget() {
		if a.Project != project || !a.Stops {
			continue
		}
		if a.Story == nil {
			return a.Text()
		}
		if c := s.claims.of(project, a.Story.StoryID); c != nil && c.Holder == holder {
			return a.Text()
		}
	}
	return ""
}
