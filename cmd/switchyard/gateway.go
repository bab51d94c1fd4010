package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"switchyard/handlers"
	"switchyard/internal/bot"
	"switchyard/internal/botfile"
	"switchyard/internal/config"
	"switchyard/internal/metrics"
	"switchyard/internal/poll"
	"switchyard/internal/service"
	"switchyard/internal/signin"
	"switchyard/internal/store"
	"switchyard/internal/supervise"
	"switchyard/internal/upstream"
)

func gatewayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Run the gateway: registry, stream, pipelines, agents, bot, sign-in, console, JSON API",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(cmd.Flags(), os.Getenv)
			if err != nil {
				return asUsage(err)
			}
			g, err := openGateway(cmd.Context(), c, newLogger(cmd.ErrOrStderr(), c.LogFormat, c.LogLevel))
			if err != nil {
				return unlessEnded(cmd.Context(), err)
			}
			return errors.Join(g.run(cmd.Context(), cmd.OutOrStdout()), g.close())
		},
	}
	config.AddFlags(cmd.Flags())
	return cmd
}

// unlessEnded is why a start failed, nil where that is because the process was told to end meanwhile.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// gateway is a gateway that has everything that it needs, its port included, and does not serve yet.
type gateway struct {
	config    *config.Config
	log       *slog.Logger
	listeners []net.Listener
	service   *service.Service
	handler   handlers.Gateway
	loops     []loop
	closers   []func() error // in the order of opening
	served    []string       // lines that say where the project servers of this process are
}

// loop is what a gateway does besides answering.
type loop struct {
	name string
	run  func(context.Context) error
}

// openGateway builds the gateway, its parts in the order in which they need each other. The caller closes it.
func openGateway(ctx context.Context, c *config.Config, log *slog.Logger) (_ *gateway, err error) {
	g := &gateway{config: c, log: log}
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
	g.closers = append(g.closers, func() error { unlock(); return nil })

	if g.listeners, err = listen(log, c.Listen); err != nil {
		return nil, err
	}
	g.closers = append(g.closers, func() error { closeAll(g.listeners); return nil })

	if err := checkNotEmptied(c.Data); err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, c.Data)
	if err != nil {
		return nil, err
	}
	g.closers = append(g.closers, db.Close)
	// Made after the database: where there is a key, there was one.
	key, err := sessionKey(c.Data)
	if err != nil {
		return nil, err
	}

	botFile := botfile.File{Path: c.BotConfig}
	credentials := signin.NewFile(c.Credentials)
	for _, err := range []error{botFile.Tidy(), credentials.Tidy(), makeConfigDirPrivate(c.BotConfig), makeConfigDirPrivate(c.Credentials)} {
		if err != nil {
			log.Warn("cannot tidy up", "error", err)
		}
	}
	counts := metrics.New()
	projects := upstream.NewClient(c.UpstreamTimeout)
	chat := bot.New(bot.Options{State: db, Log: log, Operators: c.Bot.Operators, TeamAPIURL: c.Bot.TeamAPIURL, Observe: counts.BotMessage})
	options := service.Options{
		Store: db, Log: log, Observe: counts.Events, AgentTimeout: c.AgentTimeout, JoinTokenTTL: c.JoinTokenTTL,
		Projects: projects, BotFile: botFile, Bot: chat, Credentials: credentials,
		Provider: signin.New(signin.Config{
			AuthorizeURL: c.SignIn.AuthorizeURL, TokenURL: c.SignIn.TokenURL, ClientID: c.SignIn.ClientID, Product: c.SignIn.Product,
			TokenFormat: signin.TokenFormat(c.SignIn.TokenFormat), Scopes: c.SignIn.Scopes,
		}, log),
		SignInSetup: service.SignInSetup{Missing: c.SignIn.Missing, ConfigFile: c.SignIn.ConfigFile},
	}
	if g.service, err = service.New(ctx, options); err != nil {
		return nil, fmt.Errorf("database %s: %w", filepath.Join(c.Data, store.FileName), err)
	}
	if err = g.service.Projects.Seed(ctx, c.Projects); err != nil {
		return nil, err
	}
	feeds := poll.New(poll.Options{Projects: g.service.Projects, Events: g.service.Events, Feeds: projects, Interval: c.PollInterval, Log: log})
	projects.Observe = func(project, kind string, err error) {
		counts.Call(project, kind, err)
		if kind != "feed" {
			feeds.Observe(project, err)
		}
	}
	s := g.service
	seen := bot.Gateway{Bot: s.Bot, Events: s.Events, Projects: s.Projects, Pipelines: s.Pipelines, Alerts: s.Alerts, Agents: s.Agents}
	g.loops = append(
		g.loops,
		loop{"feeds", feeds.Run},
		loop{"agents", g.service.Agents.Run},
		loop{"bot", func(ctx context.Context) error { return chat.Run(ctx, seen) }},
	)
	g.handler = handlers.Gateway{
		Service:    g.service,
		Log:        log,
		AllowHosts: c.AllowHosts,
		Metrics:    counts,
		Version:    version,
		TeamChat:   chat,
		AdminToken: c.AdminToken,
		SessionKey: key,
	}
	return g, nil
}

// run serves until ctx ends, and says on out where. Its loops have ended when it returns, or were given up.
func (g *gateway) run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	loops := supervise.New(ctx, g.log)
	for _, l := range g.loops {
		loops.Go(l.name, l.run)
	}
	for _, line := range g.served {
		fmt.Fprintln(out, line)
	}
	fmt.Fprintf(out, "Switchyard serves %s\n", baseURL(g.config.Listen, g.listeners))
	notify(ready)
	keepHeapFloor(gatewayHeapFloor)
	err := serve(ctx, g.log, g.listeners, g.handler.Handler())
	cancel()
	await(g.log, loops)
	return err
}

// loopLimit is how long loops may take to end once the server has drained. With drainLimit it is the 10 s that a stop may take.
const loopLimit = time.Second

// await waits for the loops, but not for one that hangs.
func await(log *slog.Logger, loops *supervise.Group) {
	ended := make(chan struct{})
	go func() { loops.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(loopLimit):
		log.Warn("some loops did not end in time and were given up")
	}
}

// close gives back what was opened, the last first.
func (g *gateway) close() (err error) {
	for _, closer := range slices.Backward(g.closers) {
		err = errors.Join(err, closer())
	}
	g.closers = nil
	return err
}

// closeAll closes listeners, including those that their server has closed already.
func closeAll(listeners []net.Listener) {
	for _, listener := range listeners {
		listener.Close()
	}
}
