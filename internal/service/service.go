// Package service holds the rules of the gateway. The JSON API, the console, the bot and the poller all call it, so
// that no rule is written twice. It must know nothing of HTTP, HTML, cookies, SQL and TOML; it declares the small
// interfaces that it needs in the files that use them.
package service

import (
	"cmp"
	"context"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/keyed"
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
	Reviews    *Reviews
	Costs      *Costs
	Tools      *ProjectTools
	Search     *Search
	Flow       *Flow
	Questions  *Questions
	Sessions   *Sessions
	Targets    *Targets
	Push       Push
	Deliveries Deliveries
	Bot        *Bot
	SignIn     *SignIn
	Access     *Access
	Audit      *Audit
	Retention  *Retention

	store     *database
	changes   Changes
	gateways  GatewayList
	reloaders []*reloader
	log       *slog.Logger
}

// New returns a Service with these options. It loads what is kept in memory, and the end of the stream.
func New(ctx context.Context, o Options) (*Service, error) {
	if o.Leadership == nil {
		o.Leadership = domain.SoleGateway{}
	}
	o.Budgets.Zone = cmp.Or(o.Budgets.Zone, time.UTC)
	o.store = &database{o.Store.All(), o.Store}
	audit, news, table := &Audit{store: o.store, log: o.Log}, &keyed.Waiters{}, newAgentTable(o)
	claims := newClaimTable(o, table, news)
	access := newAccess(o, audit, claims)
	projects := newProjects(o, audit, table, access, claims)
	visits := newVisits(o, projects, news)
	pipelines := newPipelines(o, projects, visits, news)
	events := &Events{
		store: o.store, log: o.Log, visits: visits, boards: pipelines, observe: o.Observe,
		news: leaderNews{store: o.store, leader: o.Leadership, unreachable: pipelines.unreachable},
	}
	last, err := o.store.LastEventID(ctx)
	if err != nil {
		return nil, err
	}
	events.tail.Store(newTail(last))
	if err := events.news.share(ctx); err != nil {
		return nil, err
	}
	bot := &Bot{
		Operators: o.BotOperators, audit: audit, pipelines: pipelines, file: o.BotFile, runner: o.Bot,
		saves: make(chan struct{}, 1),
	}
	if o.SharedBot != nil {
		if err := bot.share(ctx, *o.SharedBot, o.Changes, o.Log); err != nil {
			return nil, err
		}
	}
	s := &Service{
		Projects: projects, Events: events, Visits: visits, Pipelines: pipelines, Bot: bot, Access: access, Audit: audit,
		Agents: &Agents{
			store: o.store, audit: audit, projects: projects, access: access, claims: claims, table: table,
			joinTokenTTL: o.JoinTokenTTL,
		},
		Histories: &Histories{store: o.store, visits: visits, pipelines: pipelines},
		Flow: &Flow{
			store: o.store, visits: visits, pipelines: pipelines, reports: map[string]cachedReport{},
			forecasts: map[uint64]int{},
		},
		Questions: newQuestions(o, audit, projects, table, claims),
		Tools:     &ProjectTools{audit: audit, projects: projects, servers: o.Tools},
		SignIn:    &SignIn{audit: audit, provider: o.Provider, credentials: o.Credentials, setup: o.SignInSetup, log: o.Log},
		store:     o.store, changes: o.Changes, gateways: o.Gateways, log: o.Log,
	}
	s.Sessions = newSessions(o, claims, pipelines, s.Questions)
	s.Targets = newTargets(o, audit, events, pipelines, s.Flow)
	s.Push, s.Deliveries = Push{s.Targets}, Deliveries{s.Targets, s.Questions}
	s.Alerts = &Alerts{
		questions: s.Questions, sessions: s.Sessions,
		targets: s.Targets, store: o.store, log: o.Log, projects: projects, agents: s.Agents,
		claims: claims, events: events, bot: bot, pipelines: pipelines, leader: o.Leadership,
		acknowledged: newAcknowledgements(o, audit),
	}
	s.Targets.alerts, s.Targets.access = s.Alerts, access
	if s.Costs, err = newCosts(ctx, o, s.Flow, claims, s.Sessions); err != nil {
		return nil, err
	}
	s.Alerts.costs, s.Targets.costs = s.Costs, s.Costs
	s.Stories = &Stories{
		audit: audit, projects: projects, pipelines: pipelines, events: events, visits: visits,
		claims: claims, costs: s.Costs, sessions: s.Sessions, store: o.store, servers: o.Stories,
	}
	s.Claims = &Claims{
		table: claims, stories: s.Stories, pipelines: pipelines, costs: s.Costs, alerts: s.Alerts,
		leader: o.Leadership,
	}
	s.Reviews = &Reviews{store: o.store, stories: s.Stories, claims: s.Claims, working: s.Sessions}
	s.Overview = &Overview{
		projects: projects, pipelines: pipelines, alerts: s.Alerts, claims: s.Claims, stories: s.Stories, agents: s.Agents,
		sessions: s.Sessions, events: events, flow: s.Flow,
	}
	s.Retention = &Retention{
		store: o.store, events: events, questions: s.Questions, costs: s.Costs, log: o.Log, keep: o.KeepEvents,
		bot:    bot.runner,
		leader: o.Leadership,
	}
	s.Search = &Search{
		events: events, pipelines: pipelines, agents: s.Agents, store: o.store, servers: o.Stories, log: o.Log,
	}
	s.reloaders = []*reloader{
		table.reloader, claims.reloader, access.reloader, projects.reloader, s.Questions.table.reloader,
		s.Sessions.table.reloader, s.Targets.table.reloader, s.Alerts.acknowledged.reloader, s.Costs.reloader,
	}
	for _, r := range s.reloaders {
		if err := r.read(ctx); err != nil {
			return nil, err
		}
	}
	s.reloaders = append(s.reloaders, newReloader(o.Changes, domain.TopicVisits, visits.follow)) // read on request
	return s, nil
}

func newAcknowledgements(o Options, audit *Audit) *acknowledgements {
	s := &acknowledgements{store: o.store, audit: audit, ended: make(chan []domain.Acknowledgement, 100)}
	s.read, s.key = o.store.Acknowledgements, func(a domain.Acknowledgement) string { return a.Key }
	s.same = func(a, b domain.Acknowledgement) bool { return a == b }
	s.reloader = newReloader(o.Changes, domain.TopicAcknowledgements, s.load)
	return s
}

func newClaimTable(o Options, agents *agentTable, news *keyed.Waiters) *claimTable {
	t := &claimTable{store: o.store, agents: agents, free: news}
	t.read, t.key, t.edited = o.store.Claims, domain.Claim.Key, t.wake
	t.same = func(a, b domain.Claim) bool { return a == b }
	t.reloader = newReloader(o.Changes, domain.TopicClaims, t.load)
	return t
}

func newProjects(o Options, audit *Audit, agents *agentTable, access *Access, claims *claimTable) *Projects {
	s := &Projects{
		store: o.store, audit: audit, agents: agents, access: access, claims: claims, moved: map[string]time.Time{},
	}
	s.current.Store(&registrySnapshot{outdated: make(chan struct{})})
	s.reloader = newReloader(o.Changes, domain.TopicProjects, s.load)
	return s
}

func newVisits(o Options, projects *Projects, news *keyed.Waiters) *Visits {
	s := &Visits{visitTable: visitTable{
		store: o.store, changes: o.Changes, leader: o.Leadership, projects: projects, news: news, log: o.Log,
	}, observed: observations{queue: map[string]observation{}, news: make(chan struct{}, 1)}}
	s.forget()
	return s
}

func newPipelines(o Options, projects *Projects, visits *Visits, news *keyed.Waiters) *Pipelines {
	return &Pipelines{fetcher: fetcher{
		projects: projects, servers: o.Projects, visits: visits, log: o.Log, queue: fetchQueue{log: o.Log}, news: news,
		deriving: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), registry: &domain.Registry{},
	}}
}

func newTargets(o Options, audit *Audit, events *Events, pipelines *Pipelines, flow *Flow) *Targets {
	s := &Targets{
		store: o.store, audit: audit, log: o.Log, events: events, pipelines: pipelines, flow: flow, leader: o.Leadership,
		messenger: o.Messenger, publicURL: strings.TrimRight(o.PublicURL, "/"), keep: o.KeepEvents,
	}
	s.table.read, s.table.key = o.store.Targets, func(t domain.Target) string { return t.ID }
	s.table.compare = func(a, b domain.Target) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	}
	s.table.same = func(a, b domain.Target) bool { return reflect.DeepEqual(a, b) }
	s.table.reloader = newReloader(o.Changes, domain.TopicTargets, s.table.load)
	return s
}

// Ready returns an error unless the store responds and the last write, if within the last minute, succeeded.
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
