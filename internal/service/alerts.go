package service

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

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
	stays    *Stays
	bot      *Bot

	leader       Leadership
	pipelines    *Pipelines
	acknowledged *acknowledgements
	changed      atomic.Int64 // increases when an acknowledgement is made or ends
	stories      storyAlerts

	mu   sync.Mutex
	last listed
}

// listed is the last result of List with its inputs.
type listed struct {
	stories, others []domain.Alert
	changed         int64
	alerts          domain.Alerts
}

// List returns what needs attention, given the pipelines of all projects. The result is shared and must not be changed.
func (s *Alerts) List(ctx context.Context, pipelines []domain.ProjectPipeline) (domain.Alerts, error) {
	next := listed{stories: s.stories.find(pipelines), others: s.others(), changed: s.changed.Load()}
	found := slices.Concat(next.stories, next.others)
	if ended := s.acknowledge(found, pipelines, clock.Now()); len(ended) > 0 {
		if s.events.Available() != nil {
			return domain.NewAlerts(found), nil // acknowledgements end when the store is back
		}
		s.drop(ended...)
		if err := s.store.EndAcknowledgements(ctx, ended...); err != nil { // they end again after a restart
			s.log.WarnContext(ctx, "cannot remove ended acknowledgements", "error", err)
		}
		return domain.NewAlerts(found), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !next.isSame(s.last) {
		next.alerts = domain.NewAlerts(found)
		s.last = next
	}
	return s.last.alerts, nil
}

func (l listed) isSame(other listed) bool {
	return l.changed == other.changed && domain.SameArray(l.stories, other.stories) && slices.Equal(l.others, other.others)
}

// ofStory returns the alert of a story, nil if there is none.
func (s *Alerts) ofStory(p domain.ProjectPipeline, id string) *domain.Alert {
	stages := make([]domain.Stage, len(p.Stages))
	for i, stage := range p.Stages {
		stages[i].Name = stage.Name
		if at := slices.IndexFunc(stage.Items, func(item domain.Item) bool { return item.StoryID == id }); at >= 0 {
			stages[i].Items = stage.Items[at : at+1]
		}
	}
	if p.Stages = stages; !p.Reachable {
		return nil
	}
	p.Summarized = nil
	found := s.ofProject(p)
	if len(found) == 0 {
		return nil
	}
	alert := found[0]
	s.acknowledged.mu.Lock()
	defer s.acknowledged.mu.Unlock()
	if a, known := s.acknowledged.byKey[alert.Key()]; known {
		alert.Acknowledged = &a
	}
	return &alert
}

// ofProject returns what needs attention in one project.
func (s *Alerts) ofProject(p domain.ProjectPipeline) (found []domain.Alert) {
	s.stays.withLimits(func(limit domain.StuckLimit) {
		found = domain.FindAlerts([]domain.ProjectPipeline{p}, limit, clock.Now())
	})
	return found
}

// find returns what needs attention, in no particular order.
func (s *Alerts) find(pipelines []domain.ProjectPipeline) []domain.Alert {
	return slices.Concat(s.stories.find(pipelines), s.others())
}

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
	for _, ahead := range s.events.Ahead() {
		if _, registered := s.projects.Registry().Find(ahead.Project); registered {
			found = append(found, domain.Alert{Kind: domain.AlertClockAhead, Project: ahead.Project, Since: ahead.Since})
		}
	}
	if bot := s.bot.Status(); bot.State == domain.BotFailed {
		found = append(found, domain.Alert{Kind: domain.AlertBot, Reason: bot.Detail, Since: bot.Since})
	}
	if since, err := s.store.WriteFailure(); err != nil {
		found = append(found, domain.Alert{Kind: domain.AlertStore, Reason: domain.MessageOf(err), Since: since})
	}
	return found
}
