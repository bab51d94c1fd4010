package service

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

type Alerts struct {
	store        *database
	log          *slog.Logger
	projects     *Projects
	agents       *Agents
	claims       *claimTable
	events       *Events
	bot          *Bot
	costs        *Costs
	questions    *Questions
	sessions     *Sessions
	targets      *Targets
	leader       domain.Leadership
	pipelines    *Pipelines
	acknowledged *acknowledgements
}

// alertBoardAge is how old a pipeline may be in a list of alerts.
const alertBoardAge = 100 * time.Millisecond

func (s *Alerts) List(ctx context.Context) domain.Alerts {
	return domain.NewAlerts(s.all(s.pipelines.Boards(ctx, alertBoardAge)))
}

// Run removes ended acknowledgements from the store, so that no reader waits for that, until ctx ends.
func (s *Alerts) Run(ctx context.Context) error {
	for {
		select {
		case ended := <-s.acknowledged.ended:
			// If that fails, they end again after a restart.
			if err := s.acknowledged.store.EndAcknowledgements(ctx, nil, ended...); err != nil {
				s.log.WarnContext(ctx, "cannot remove ended acknowledgements", "error", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// all returns what needs attention on these boards and elsewhere, unordered, and ends acknowledgements.
func (s *Alerts) all(boards *Boards) []domain.Alert {
	found := s.find(boards)
	ended := s.acknowledge(found, boards.Pipelines, clock.Now())
	if len(ended) > 0 && s.events.Available() == nil { // otherwise they end when the store is back
		select {
		case s.acknowledged.ended <- ended:
			s.acknowledged.forget(s.acknowledged.same, ended...)
		default: // the store is slow: next time
		}
	}
	return found
}

func (s *Alerts) find(boards *Boards) []domain.Alert {
	return slices.Concat(append(slices.Clip(boards.alerts), s.others())...)
}

// others returns what needs attention besides the stories and servers of projects.
func (s *Alerts) others() (found []domain.Alert) {
	for _, agent := range s.agents.All() {
		a := domain.Alert{Agent: agent.Label, AgentID: agent.ID, Project: agent.Project}
		switch {
		case agent.Presence == domain.AgentLost:
			a.Kind, a.Since = domain.AlertAgentLost, agent.LastSeen
			_, a.Reason = s.claims.lastOf("agent "+agent.ID, agent.Project)
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
	asked := s.questions.alerts()
	for _, a := range asked[:min(len(asked), maxNamed)] {
		if a.Story == nil {
			continue
		}
		if item, _ := s.pipelines.Known(a.Project, a.Story.StoryID); item != nil {
			a.Story.StoryName = item.StoryName
		}
	}
	return slices.Concat(found, asked, s.sessions.waiting(), s.targets.failing(), s.overBudget(), s.leaderAlerts())
}

// maxNamed is how many questions show their story's name rather than its id: more than any page lists.
const maxNamed = 50

// acknowledge marks the acknowledged alerts. It returns the acknowledgements that have ended: they have expired, or
// their alert has ended or changed.
func (s *Alerts) acknowledge(
	alerts []domain.Alert, pipelines []domain.ProjectPipeline, now time.Time,
) (ended []domain.Acknowledgement) {
	acknowledged := s.acknowledged.list()
	if len(acknowledged) == 0 {
		return nil
	}
	present := map[string]bool{}
	for i := range alerts {
		key := alerts[i].Key()
		a, known := s.acknowledged.get(key)
		if !known {
			continue
		}
		present[key] = true
		if a.EndedBy(alerts[i]) && s.decides(a) || !a.Until.IsZero() && !now.Before(a.Until) {
			ended = append(ended, a)
		} else {
			alerts[i].Acknowledged = &a
		}
	}
	unknown := unknownAlerts(pipelines)
	for _, a := range acknowledged {
		isOver := func() bool { return s.decides(a) && s.isOver(domain.KindOfKey(a.Key), unknown(a.Project, a.Key)) }
		if !present[a.Key] && (!a.Until.IsZero() && !now.Before(a.Until) || isOver()) {
			ended = append(ended, a)
		}
	}
	return ended
}

// unknownAlerts reports whether a missing alert may still be open: its project is unreachable, or a checkout moved its
// story.
func unknownAlerts(pipelines []domain.ProjectPipeline) func(project, key string) bool {
	unreachable, away := map[string]bool{}, map[string]func() map[string]bool{}
	for i := range pipelines {
		p := &pipelines[i]
		if unreachable[p.Project] = !p.Reachable; len(p.CheckedOut) == 0 {
			continue
		}
		away[p.Project] = sync.OnceValue(func() map[string]bool {
			keys := map[string]bool{}
			for _, id := range p.CheckedOut {
				for _, kind := range domain.StoryAlerts {
					a := domain.Alert{Kind: kind, Project: p.Project, Story: &domain.Item{StoryID: id}}
					keys[shortKey(a.Key())] = true
				}
			}
			return keys
		})
	}
	return func(project, key string) bool {
		keys := away[project]
		return unreachable[project] || keys != nil && keys()[shortKey(key)]
	}
}

// decides reports whether this gateway decides if an alert is over: the leader does for what it follows, since others
// may have an older state.
func (s *Alerts) decides(a domain.Acknowledgement) bool {
	_, registered := s.projects.Registry().Find(a.Project)
	return s.leader.Leads() || !registered && domain.KindOfKey(a.Key) != domain.AlertBot
}

// isOver reports whether an alert that is no longer found is over. While its board is unknown or the bot is connecting,
// that cannot be said.
func (s *Alerts) isOver(kind domain.AlertKind, unknown bool) bool {
	switch kind {
	case domain.AlertUnreachable, domain.AlertFault:
		return !unknown
	case domain.AlertBot:
		return s.bot.Status().State != domain.BotConnecting
	}
	return !slices.Contains(domain.StoryAlerts, kind) || !unknown
}

// leaderAlerts returns what needs attention according to the leader, without the projects that this gateway cannot
// reach either.
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

// Acknowledge records that somebody is taking care of an alert, for the given duration, or, if it is 0, until the alert
// ends or changes. It returns NotFound when there is no alert with that key.
func (s *Alerts) Acknowledge(ctx context.Context, key string, duration time.Duration) error {
	for _, alert := range s.find(s.pipelines.Boards(ctx, quietAge)) {
		if alert.Key() == key {
			a := newAcknowledgement(ctx, alert, clock.Now(), duration)
			change := domain.Change{Action: domain.AlertAcknowledged, Subject: key, Detail: a.Text, Project: alert.Project}
			return s.acknowledged.add(ctx, change, a)
		}
	}
	return alertNotFound()
}

func newAcknowledgement(
	ctx context.Context, alert domain.Alert, now time.Time, duration time.Duration,
) domain.Acknowledgement {
	a := domain.Acknowledgement{
		Key: alert.Key(), Project: alert.Project, Text: alert.Text(), By: domain.CutText(domain.ActorOf(ctx).Who),
		At:    now.Truncate(time.Millisecond),
		Since: alert.Since,
	}
	if duration > 0 {
		// Not from the truncated time, which would end "until 8:00" early.
		a.Until = now.Add(duration).Truncate(time.Millisecond)
	}
	return a
}

// Reopen removes an acknowledgement. It returns NotFound when there is neither an alert nor an acknowledgement with
// that key.
func (s *Alerts) Reopen(ctx context.Context, key string) error {
	meant := func(a domain.Acknowledgement) bool { return a.Key == key }
	err := s.acknowledged.takeBack(ctx, meant, func(all []domain.Acknowledgement) domain.Change {
		a := all[0]
		return domain.Change{Subject: key, Detail: details("acknowledged by "+a.By, a.Text), Project: a.Project}
	})
	isIt := func(alert domain.Alert) bool { return alert.Key() == key }
	if domain.CodeOf(err) == domain.NotFound && slices.ContainsFunc(s.find(s.pipelines.Boards(ctx, quietAge)), isIt) {
		return nil
	}
	return err
}

// AcknowledgeStuck acknowledges all stuck stories not yet acknowledged. It returns their number and the time of the
// acknowledgement, by which ReopenStuck undoes it. It returns NotFound if there are none.
func (s *Alerts) AcknowledgeStuck(ctx context.Context, duration time.Duration) (n int, at time.Time, err error) {
	boards := s.pipelines.Boards(ctx, quietAge)
	now, alerts := clock.Now(), s.find(boards)
	s.acknowledge(alerts, boards.Pipelines, now) // the next List removes those that have ended
	var all []domain.Acknowledgement
	for _, alert := range alerts {
		if alert.Kind == domain.AlertStuck && alert.Acknowledged == nil {
			all = append(all, newAcknowledgement(ctx, alert, now, duration))
		}
	}
	if len(all) == 0 {
		return 0, at, alertNotFound()
	}
	change := domain.Change{
		Action: domain.AlertAcknowledged, Subject: string(domain.AlertStuck), Detail: stuckStories(len(all)),
	}
	return len(all), all[0].At, s.acknowledged.add(ctx, change, all...)
}

func stuckStories(n int) string { return strconv.Itoa(n) + " stuck stories" }

// ReopenStuck undoes an AcknowledgeStuck by its time. It returns NotFound if none of those acknowledgements is left.
func (s *Alerts) ReopenStuck(ctx context.Context, at time.Time) error {
	meant := func(a domain.Acknowledgement) bool {
		return domain.KindOfKey(a.Key) == domain.AlertStuck && a.At.Equal(at)
	}
	return s.acknowledged.takeBack(ctx, meant, func(all []domain.Acknowledgement) domain.Change {
		return domain.Change{Subject: string(domain.AlertStuck), Detail: stuckStories(len(all))}
	})
}
