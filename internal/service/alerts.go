package service

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

type alertStore interface {
	acknowledgementStore
	newsStore
}

// Alerts finds what needs attention.
type Alerts struct {
	store     alertStore
	audit     *Audit
	log       *slog.Logger
	projects  *Projects
	agents    *Agents
	events    *Events
	bot       *Bot
	questions *Questions
	targets   *Targets

	leader    Leadership
	pipelines *Pipelines

	stored *reloader // of acknowledgements
	// change is held while acknowledgements in store and memory are changed, so that the two agree.
	change sync.Mutex
	// acknowledged mirrors the stored acknowledgements that have not ended, by key. It is replaced, never changed.
	acknowledged atomic.Pointer[map[string]domain.Acknowledgement]
}

// askedRecently is how old a pipeline may be in a list of alerts.
const askedRecently = 100 * time.Millisecond

func (s *Alerts) List(ctx context.Context) domain.Alerts {
	return s.in(ctx, s.pipelines.Boards(ctx, askedRecently))
}

// in returns what needs attention on these boards and elsewhere.
func (s *Alerts) in(ctx context.Context, boards *Boards) domain.Alerts {
	return domain.NewAlerts(s.all(ctx, boards))
}

// all returns the same in no particular order, and ends acknowledgements.
func (s *Alerts) all(ctx context.Context, boards *Boards) []domain.Alert {
	found := s.find(boards)
	ended := s.acknowledge(found, boards.Pipelines, clock.Now())
	if len(ended) > 0 && s.events.Available() == nil { // otherwise they end when the store is back
		s.drop(ended)
		if err := s.store.EndAcknowledgements(ctx, nil, ended...); err != nil { // they end again after a restart
			s.log.WarnContext(ctx, "cannot remove ended acknowledgements", "error", err)
		}
	}
	return found
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
	return slices.Concat(found, s.questions.alerts(), s.targets.failing(), s.leaderAlerts())
}

// acknowledge marks the acknowledged alerts. It returns the acknowledgements that have ended: they have expired, or
// their alert has ended or changed.
func (s *Alerts) acknowledge(
	alerts []domain.Alert, pipelines []domain.ProjectPipeline, now time.Time,
) (ended []domain.Acknowledgement) {
	byKey := *s.acknowledged.Load()
	if len(byKey) == 0 {
		return nil
	}
	present := map[string]bool{}
	for i := range alerts {
		key := alerts[i].Key()
		a, known := byKey[key]
		if !known {
			continue
		}
		present[key] = true
		if a.Ends(alerts[i]) && s.decides(a) || !a.Until.IsZero() && !now.Before(a.Until) {
			ended = append(ended, a)
		} else {
			alerts[i].Acknowledged = &a
		}
	}
	unknown := map[string]bool{}
	for _, p := range pipelines {
		unknown[p.Project] = !p.Reachable
	}
	for key, a := range byKey {
		if !present[key] && (!a.Until.IsZero() && !now.Before(a.Until) || s.decides(a) && s.isOver(key, a.Project, unknown)) {
			ended = append(ended, a)
		}
	}
	return ended
}

// decides reports whether this gateway decides if an alert is over. That is the leader for what it follows: others may
// have an older state.
func (s *Alerts) decides(a domain.Acknowledgement) bool {
	_, registered := s.projects.Registry().Find(a.Project)
	return s.leader.Leads() || !registered && domain.KindOfKey(a.Key) != domain.AlertBot
}

// isOver reports whether an alert that is no longer found is over. While its project cannot be reached or the bot is
// connecting, that is unknown.
func (s *Alerts) isOver(key, project string, unknown map[string]bool) bool {
	switch domain.KindOfKey(key) {
	case domain.AlertBlocked, domain.AlertMerge, domain.AlertStuck, domain.AlertUnreachable:
		return !unknown[project]
	case domain.AlertBot:
		return s.bot.Status().State != domain.BotConnecting
	}
	return true
}

// leaderAlerts returns what needs attention by what the leader knows. Projects that this gateway cannot reach either
// are not among it.
func (s *Alerts) leaderAlerts() (found []domain.Alert) {
	news, registry := s.events.news.now(), s.projects.Registry()
	for project, since := range news.ClockSkew {
		if _, registered := registry.Find(project); registered {
			found = append(found, domain.Alert{Kind: domain.AlertClockAhead, Project: project, Since: since})
		}
	}
	if len(news.Unreachable) > 0 {
		ours := s.pipelines.unreachable()
		for project, t := range news.Unreachable {
			_, here := ours[project]
			if _, registered := registry.Find(project); registered && !here {
				reason := "the gateway that follows it cannot reach it: " + t.Reason
				found = append(found, domain.Alert{Kind: domain.AlertUnreachable, Project: project, Reason: reason, Since: t.Since})
			}
		}
	}
	if since, err := s.store.WriteFailure(); err != nil {
		found = append(found, domain.Alert{Kind: domain.AlertStore, Reason: domain.MessageOf(err), Since: since})
	} else if news.Store != nil {
		found = append(found, domain.Alert{Kind: domain.AlertStore, Reason: news.Store.Reason, Since: news.Store.Since})
	}
	return found
}
