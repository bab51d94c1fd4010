// Package service holds the rules of the gateway. The JSON API, the console, the bot and the poller all call it, so
// that no rule is written twice. It must know nothing of HTTP, HTML, cookies, SQL and TOML; it declares the small
// interfaces that it needs in the files that use them.
package service

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// Service combines the gateway's rules, with a type for each noun. All are safe for concurrent use.
type Service struct {
	Projects   *Projects
	Agents     *Agents
	Events     *Events
	Visits     *Visits
	Histories  *Histories
	Pipelines  *Pipelines
	Alerts     *Alerts
	Overview   *Overview
	Stories    *Stories
	Claims     *Claims
	Tools      *ProjectTools
	Search     *Search
	Flow       *Flow
	Questions  *Questions
	Targets    *Targets
	Push       Push
	Deliveries Deliveries
	Bot        *Bot
	SignIn     *SignIn
	Access     *Access
	Audit      *Audit
	Retention  *Retention

	store     Store
	changes   Changes
	gateways  GatewayList
	reloaders []*reloader
	log       *slog.Logger
}

// New returns a Service with these options. It loads the registry, the agents and the end of the stream.
func New(ctx context.Context, o Options) (*Service, error) {
	if o.Leadership == nil {
		o.Leadership = alone{}
	}
	table, err := loadAgentTable(ctx, o.Store, o.Changes, o.AgentTimeout)
	if err != nil {
		return nil, err
	}
	news := &projectNews{}
	claims, err := loadClaimTable(ctx, o.Store, o.Changes, table, news)
	if err != nil {
		return nil, err
	}
	audit := &Audit{store: o.Store, log: o.Log}
	access, err := loadAccess(ctx, o.Store, o.Changes, audit)
	if err != nil {
		return nil, err
	}
	projects := &Projects{
		store: o.Store, audit: audit, agents: table, access: access, claims: claims,
		moved: map[string]time.Time{},
	}
	projects.current.Store(&registrySnapshot{outdated: make(chan struct{})})
	projects.stored = newReloader(o.Changes, domain.TopicProjects, projects.load)
	if err := projects.load(ctx); err != nil {
		return nil, err
	}
	visits := newVisits(o.Store, o.Changes, o.Leadership, projects, news, o.Log)
	events := &Events{store: o.Store, log: o.Log, visits: visits, observe: o.Observe}
	events.news = leaderNews{store: o.Store, leader: o.Leadership}
	last, err := o.Store.LastEventID(ctx)
	if err != nil {
		return nil, err
	}
	events.tail.Store(newTail(last))
	s := &Service{
		Projects: projects,
		Agents: &Agents{
			store: o.Store, audit: audit, projects: projects, access: access, claims: claims, table: table,
			joinTokenTTL: o.JoinTokenTTL,
		},
		Events:    events,
		Visits:    visits,
		Pipelines: newPipelines(projects, o.Projects, visits, news, o.Log),
		Bot:       &Bot{audit: audit, file: o.BotFile, runner: o.Bot, saves: make(chan struct{}, 1)},
		SignIn:    &SignIn{audit: audit, provider: o.Provider, credentials: o.Credentials, setup: o.SignInSetup, log: o.Log},
		Access:    access,
		Audit:     audit,
		store:     o.Store,
		changes:   o.Changes,
		gateways:  o.Gateways,
		log:       o.Log,
	}
	s.Bot.pipelines = s.Pipelines
	s.Histories = &Histories{store: o.Store, visits: visits, pipelines: s.Pipelines}
	events.news.unreachable = s.Pipelines.unreachable
	if err := events.news.share(ctx); err != nil {
		return nil, err
	}
	if o.SharedBot != nil {
		if err := s.Bot.share(ctx, *o.SharedBot, o.Changes, o.Log); err != nil {
			return nil, err
		}
	}
	s.Questions = newQuestions(o, audit, projects, table)
	if err := s.Questions.load(ctx); err != nil {
		return nil, err
	}
	s.Targets = newTargets(o, audit, events)
	s.Push, s.Deliveries = Push{s.Targets}, Deliveries{s.Targets, s.Questions}
	if err := s.Targets.load(ctx); err != nil {
		return nil, err
	}
	acknowledged, err := loadAcknowledgements(ctx, o.Store, o.Changes, audit)
	if err != nil {
		return nil, err
	}
	s.Alerts = &Alerts{
		questions: s.Questions, targets: s.Targets, store: o.Store, log: o.Log, projects: projects, agents: s.Agents,
		events: events, bot: s.Bot, pipelines: s.Pipelines, leader: o.Leadership, acknowledged: acknowledged,
	}
	s.Flow = newFlow(o.Store, visits, s.Pipelines)
	s.Targets.alerts, s.Targets.pipelines, s.Targets.flow = s.Alerts, s.Pipelines, s.Flow
	visited := newReloader(o.Changes, domain.TopicVisits, visits.follow)
	s.reloaders = []*reloader{
		projects.stored, table.stored, access.stored, acknowledged.stored, s.Questions.stored, claims.stored, visited,
		s.Targets.stored,
	}
	s.Stories = &Stories{
		audit: audit, projects: projects, pipelines: s.Pipelines, events: events, visits: visits,
		claims: claims, store: o.Store, servers: o.Stories,
	}
	s.Claims = &Claims{table: claims, stories: s.Stories, pipelines: s.Pipelines, leader: o.Leadership}
	s.Overview = &Overview{
		projects: projects, pipelines: s.Pipelines, alerts: s.Alerts, claims: s.Claims, stories: s.Stories, agents: s.Agents,
		events: events, flow: s.Flow,
	}
	s.Tools = &ProjectTools{audit: audit, projects: projects, servers: o.Tools}
	s.Retention = &Retention{
		store: o.Store, events: events, questions: s.Questions, log: o.Log, keep: o.KeepEvents, bot: s.Bot.runner,
		leader: o.Leadership,
	}
	s.Search = &Search{
		events: events, pipelines: s.Pipelines, agents: s.Agents, store: o.Store, servers: o.Stories, log: o.Log,
	}
	return s, nil
}

func newQuestions(o Options, audit *Audit, projects *Projects, agents *agentTable) *Questions {
	q := &Questions{
		store: o.Store, audit: audit, projects: projects, agents: agents, leader: o.Leadership,
		permissionRole: cmp.Or(o.PermissionRole, domain.RoleOperator), changed: make(chan struct{}),
	}
	q.stored = newReloader(o.Changes, domain.TopicQuestions, q.load)
	return q
}

// Ready returns an error unless the store responds and the last write, if it was in the last minute, succeeded.
func (s *Service) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err := s.store.Ping(ctx); err != nil {
		if s.Events.following.Load() && ctx.Err() == nil && domain.CodeOf(err) == domain.Unavailable {
			s.Events.reached.record(0, err) // at once, rather than when following the stream fails
		}
		return err
	}
	_, err := s.store.WriteFailure()
	return err
}

// Gateways returns the live gateways that share the store, sorted by their time of starting; none if there is only this
// one.
func (s *Service) Gateways(ctx context.Context) ([]domain.LiveGateway, error) {
	if s.gateways == nil {
		return nil, nil
	}
	if err := s.Events.Available(); err != nil {
		return nil, err
	}
	return s.gateways.LiveGateways(ctx)
}

// Sync keeps memory up to date with the store, which other gateways change as well, until ctx ends. If there are no
// others it returns at once.
func (s *Service) Sync(ctx context.Context) error {
	if s.changes == nil {
		return nil
	}
	group := supervise.New(ctx, s.log)
	for _, r := range s.reloaders {
		group.Go("changes of "+string(r.topic), func(ctx context.Context) error { r.run(ctx); return nil })
	}
	if s.Bot.shared != nil {
		group.Go("bot of all gateways", s.Bot.shared.loop)
	}
	group.Go("projects that the leader cannot reach", func(ctx context.Context) error {
		return s.Pipelines.probe(ctx, &s.Events.news)
	})
	group.Wait()
	return nil
}
