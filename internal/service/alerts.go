package service

import (
	"context"
	"strconv"
	"time"

	"switchyard/internal/domain"
)

// maxGaps is how many gaps are looked at: each is at least one read of a feed apart from the next.
const maxGaps = 100

// Alerts finds what needs somebody.
type Alerts struct {
	projects *Projects
	agents   *Agents
	events   *Events
	bot      *Bot
	signIn   *SignIn
}

// List returns everything that needs somebody, given the pipelines: what stands still before what is merely slow or
// past, the oldest first.
func (s *Alerts) List(ctx context.Context, pipelines []domain.ProjectPipeline) ([]domain.Alert, error) {
	now := time.Now()
	found := domain.FindAlerts(pipelines, now)
	gaps, err := s.gaps(ctx, now.Add(-domain.GapAlertAge).UnixMilli())
	if err != nil {
		return nil, err
	}
	found = append(found, gaps...)
	for _, agent := range s.agents.All() {
		if agent.Presence == domain.AgentLost {
			found = append(found, lostAgent(agent))
		}
	}
	if bot := s.bot.Status(); bot.State == domain.BotFailed {
		found = append(found, domain.Alert{Kind: domain.AlertBot, Reason: bot.Detail, SinceMS: bot.Since.UnixMilli()})
	}
	if signIn := s.signIn.Status(); signIn.Expired {
		found = append(found, domain.Alert{Kind: domain.AlertSignIn, SinceMS: int64(signIn.ExpiresAt)}) // it is past, so it fits
	}
	domain.SortAlerts(found)
	return found, nil
}

func lostAgent(agent domain.KnownAgent) domain.Alert {
	return domain.Alert{
		Kind: domain.AlertAgentLost, Agent: agent.Label, Project: agent.Project, SinceMS: agent.LastSeen.UnixMilli(),
	}
}

// gaps returns, for each registered project that lost events since then, one entry with what it lost in all.
func (s *Alerts) gaps(ctx context.Context, sinceMS int64) ([]domain.Alert, error) {
	page, err := s.events.Page(ctx, domain.EventQuery{Backward: true, Limit: maxGaps, Type: domain.FeedGap})
	if err != nil {
		return nil, err
	}
	missed, at := map[string]int64{}, map[string]int64{}
	for _, e := range page.Events {
		if e.ReceivedAtMS >= sinceMS {
			missed[e.Project] += e.Details().Missed
			at[e.Project] = max(at[e.Project], e.ReceivedAtMS)
		}
	}
	var found []domain.Alert
	for _, p := range s.projects.Registry().Projects {
		if n := missed[p.Name]; n > 0 {
			reason := strconv.FormatInt(n, 10) + " were dropped before they could be read"
			found = append(found, domain.Alert{Kind: domain.AlertFeedGap, Project: p.Name, Reason: reason, SinceMS: at[p.Name]})
		}
	}
	return found, nil
}
