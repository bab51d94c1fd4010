package service

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// Alerts finds what needs attention.
type Alerts struct {
	store    Store
	audit    *Audit
	log      *slog.Logger
	projects *Projects
	agents   *Agents
	events   *Events
	bot      *Bot

	leader       Leadership
	pipelines    *Pipelines
	acknowledged *acknowledgements
	changed      atomic.Int64 // increases when an acknowledgement is made or ends
}

// askedRecently is how old a pipeline may be in a list of alerts.
const askedRecently = 100 * time.Millisecond

// List returns what needs attention.
func (s *Alerts) List(ctx context.Context) domain.Alerts {
	return s.in(ctx, s.pipelines.Boards(ctx, askedRecently))
}

// in returns what needs attention on these boards and elsewhere.
func (s *Alerts) in(ctx context.Context, boards *Boards) domain.Alerts {
	found := s.find(boards)
	ended := s.acknowledge(found, boards.Pipelines, clock.Now())
	if len(ended) > 0 && s.events.Available() == nil { // otherwise they end when the store is back
		s.drop(ended...)
		if err := s.store.EndAcknowledgements(ctx, ended...); err != nil { // they end again after a restart
			s.log.WarnContext(ctx, "cannot remove ended acknowledgements", "error", err)
		}
	}
	return domain.NewAlerts(found)
}

// find returns what needs attention, in no particular order.
func (s *Alerts) find(boards *Boards) []domain.Alert { return slices.Concat(boards.alerts, s.others()) }

// others returns what needs attention besides the stories and servers of projects.
func (s *Alerts) others() (found []domain.Alert) {
	for _, agent := range s.agents.All() {
		a := domain.Alert{Agent: agent.Label, AgentID: agent.ID, Project: agent.Project}
		switch {
		case agent.Presence == domain.AgentLost:
			a.Kind, a.Since = domain.AlertAgentLost, agent.LastSeen
		case agent.Presence == domain.AgentAlive && !agent.FailingSince.IsZero():
			a.Kind, a.Since = domain.AlertAgentFailed, agent.FailingSince
		default:
			continue
		}
		found = append(found, a)
	}
	if bot := s.bot.Status(); bot.State == domain.BotFailed {
		found = append(found, domain.Alert{Kind: domain.AlertBot, Reason: bot.Detail, Since: bot.Since})
	}
	return append(found, s.leaderAlerts()...)
}
