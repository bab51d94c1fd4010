package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"switchyard/handlers"
	"switchyard/internal/bot"
	"switchyard/internal/bot/matrix"
	"switchyard/internal/bot/slack"
	"switchyard/internal/botfile"
	"switchyard/internal/clock"
	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/login"
	"switchyard/internal/metrics"
	"switchyard/internal/notify"
	"switchyard/internal/poll"
	"switchyard/internal/service"
	"switchyard/internal/signin"
	"switchyard/internal/store"
	"switchyard/internal/store/postgres"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/upstream"
)

type database interface {
	service.Store
	bot.State
	Close() error
}

// openGateway locks the data directory, opens the port, and opens the database in the directory. A shared database is
// opened by run, which waits for it while the gateway serves. The caller closes the gateway.
func openGateway(ctx context.Context, c *config.Config, start *startLog) (_ *gateway, err error) {
	log := start.log
	g := &gateway{
		config: c, log: log, start: start, handler: newHandler(c, log), begun: make(chan struct{}),
	}
	for _, warning := range c.Warnings {
		log.Warn(warning)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()

	unlock, err := openDataDir(c.Data)
	if err != nil {
		return nil, err
	}
	g.addCloser(func() error { unlock(); return nil })

	if g.listeners, err = listen(log, c.Listen); err != nil {
		return nil, err
	}
	g.addCloser(func() error { closeAll(g.listeners); return nil })
	if c.Database != "" {
		if err := postgres.CheckAddress(c.Database.Reveal()); err != nil {
			return nil, usagef("the address of the database: %w", err)
		}
		return g, nil
	}

	if err := checkNotEmptied(c.Data, log); err != nil {
		return nil, err
	}
	db, err := sqlite.OpenUnchecked(ctx, c.Data)
	if err != nil {
		return nil, err
	}
	g.addCloser(db.Close)
	// Created after the database: the key's presence shows that there was a database.
	if g.handler.SessionKey, err = sessionKey(c.Data); err != nil {
		return nil, err
	}
	if err := g.build(ctx, db, nil); err != nil {
		return nil, sqlite.Failed(c.Data, err)
	}
	g.loops = append(g.loops, loop{"checkpoints", db.Checkpoints},
		loop{"check of the database", later(func(context.Context) error {
			if err := db.Check(); err != nil {
				g.fail(startError{sqlite.Failed(c.Data, err)})
			}
			return nil
		})})
	return g, nil
}

var chatTransports = map[domain.BotTransport]func(bot.Options, map[string]domain.Secret) bot.Transport{
	domain.BotMatrix: matrix.New,
	domain.BotTeam:   slack.New,
}

// build builds the gateway over an open database, its parts in the order of their dependencies. shared is nil when no
// other gateway shares the database.
func (g *gateway) build(ctx context.Context, db database, shared *sharedDatabase) (err error) {
	c, log := g.config, g.log
	if err := recordVersion(ctx, db); err != nil {
		return err
	}
	botFile := botfile.File{Path: c.BotConfig}
	credentials := signin.NewFile(c.Credentials)
	for _, err := range []error{
		botFile.Tidy(), credentials.Tidy(), makeConfigDirPrivate(c.BotConfig), makeConfigDirPrivate(c.Credentials),
	} {
		if err != nil {
			log.Warn("cannot clean up", "error", err)
		}
	}
	counts := metrics.New(c.MetricsPerProject)
	projects := upstream.NewClient(c.UpstreamTimeout)
	projects.ToolTimeout = c.ToolTimeout
	chatOptions := bot.Options{
		Transports: chatTransports, State: db, Identity: db.Identity, Log: log, Operators: c.Bot.Operators,
		TeamAPIURL: c.Bot.TeamAPIURL, PublicURL: c.PublicURL, Observe: counts.BotMessage,
	}
	var flows signin.Flows
	if shared != nil {
		counts.Follows = func(string) bool { return shared.member.Leads() }
		chatOptions.Leadership, flows = shared.member, shared.store
		chatOptions.LeaderState = func(token int64) bot.State {
			return store.LeaderState{Tables: shared.store.Tables, Token: token}
		}
	}
	chat := bot.New(chatOptions)
	private := c.Notifications.AllowPrivate
	messenger := notify.New(notify.Options{
		Guard:   notify.Guard{Private: private, Loopback: private || c.OnLoopback()},
		Version: version(), Mail: notify.Mail(c.Notifications),
		Push: notify.Push{Keys: db.All().PushKeys, PublicURL: c.PublicURL},
	})
	options := service.Options{
		Store: db, Log: log, Observe: counts.Events, AgentTimeout: c.AgentTimeout, KeepEvents: c.KeepEvents,
		PermissionRole: domain.Role(c.PermissionRole), PublicURL: c.PublicURL, Messenger: messenger,
		JoinTokenTTL: c.JoinTokenTTL, Projects: projects, Stories: projects, Tools: projects, BotFile: botFile, Bot: chat,
		BotOperators: c.Bot.Operators, Prices: c.Prices, Budgets: c.Budgets,
		Credentials: credentials, Provider: signin.New(c.SignIn, flows, log),
		SignInSetup: service.SignInSetup{Missing: c.SignIn.Missing, ConfigFile: c.SignIn.ConfigFile},
	}
	if shared != nil {
		options.Changes, options.Leadership, options.Gateways = shared.store, shared.member, shared
		options.SharedBot = &service.SharedBot{Store: shared.store, Leader: shared.member, Gateway: shared.name}
	}
	if g.service, err = service.New(ctx, options); err != nil {
		return err
	}
	followed := poll.Options{
		Projects: g.service.Projects, Events: g.service.Events, Feeds: projects, Pipelines: g.service.Pipelines,
		Histories: g.service.Histories, Interval: c.PollInterval, Log: log,
	}
	if shared != nil {
		followed.Leadership = shared.member
		shared.pipelines, shared.member.Reaches = g.service.Pipelines, g.service.Pipelines.Reaches
	}
	g.state = db
	if err = g.service.Projects.Seed(ctx, c.Projects); err != nil {
		return err
	}
	feeds := poll.New(followed)
	projects.Observe = func(project, kind string, err error) {
		counts.Call(project, kind, err)
		if kind != "feed" {
			feeds.Observe(project, err)
		}
	}
	s := g.service
	seen := bot.Gateway{
		Bot: s.Bot.Starting(), Events: s.Events, Projects: s.Projects, Pipelines: s.Pipelines, Alerts: s.Alerts,
		Agents: s.Agents, Stories: s.Stories, Search: s.Search, Flow: s.Flow, Questions: s.Questions, Sessions: s.Sessions,
	}
	g.loops = append(
		shared.followers(g.service),
		loop{"feeds", feeds.Run},
		loop{"pipelines", g.service.Overview.Run},
		loop{"agents", g.service.Agents.Run},
		loop{"access", g.service.Access.Run},
		loop{"audit", later(g.service.Audit.Run)},
		loop{"visits", g.service.Visits.Run},
		loop{"alerts", g.service.Alerts.Run},
		loop{"claims", g.service.Claims.Run},
		loop{"flow", g.service.Flow.Run},
		loop{"questions", g.service.Questions.Run},
		loop{"sessions of coding agents", g.service.Sessions.Run},
		loop{"targets", g.service.Targets.Run},
		loop{"retention", g.service.Retention.Run},
		loop{"bot", func(ctx context.Context) error { return chat.Run(ctx, seen) }},
	)
	if shared != nil {
		for i, l := range g.loops {
			g.loops[i].run = whileAway(l.run)
		}
	}
	if c.Login.Issuer != "" {
		g.handler.Login = login.New(c.Login, db.All().SpendLogin)
	}
	g.handler.Service, g.handler.Chat, g.handler.Metrics = g.service, chat, counts
	g.addCloser(func() error { projects.Close(); messenger.Close(); return nil })
	return nil
}

func newHandler(c *config.Config, log *slog.Logger) handlers.Gateway {
	return handlers.Gateway{
		Log: log, Version: version(), Revision: revision(), AdminToken: c.AdminToken, AllowHosts: c.AllowHosts,
		PublicURL: c.PublicURL, Proxies: c.Login,
	}
}

// openShared opens the shared database and builds the gateway over it. After an error it can be called again.
func (g *gateway) openShared(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	store, err := postgres.Open(ctx, g.config.Database.Reveal())
	if err != nil {
		return err
	}
	if !store.SearchesUseIndex() {
		g.log.WarnContext(ctx, "searches are slow: the database lacks the extension pg_trgm, and this role may not create it")
	}
	if ahead := store.Clock().Skew(); ahead.Abs() > wrongClock {
		g.log.WarnContext(ctx, "the clocks of this machine and the database differ; the gateway uses the database's",
			"database_ahead", ahead.Round(time.Millisecond))
	}
	clock.Follow(store.Clock())
	shared := joinShared(store, g.log)
	g.handler.SessionKey, err = store.SessionKey(ctx)
	if err == nil {
		err = g.build(ctx, store, shared)
	}
	if err != nil {
		shared.leave()
		return errors.Join(err, store.Close())
	}
	g.shared = shared
	g.addCloser(store.Close)
	return nil
}
