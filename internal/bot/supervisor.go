package bot

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// Options are what a Supervisor is built from.
type Options struct {
	State      State
	Log        *slog.Logger
	Operators  []string // user ids that may change things and invite the bot
	TeamAPIURL string   // method names are appended, with a slash between
	PublicURL  string   // where people reach the console, for links to it; "" for no links
	// Observe, unless it is nil, is called after each message about events that a room accepted or refused.
	Observe func(refused bool)
}

// Supervisor runs one bot at a time, with the stored configuration. Its methods are safe for concurrent use.
type Supervisor struct {
	options  Options
	build    func(domain.BotConfig) (Transport, error)
	restarts chan chan<- struct{} // each carries the channel to close once the new bot runs

	mu      sync.Mutex
	status  domain.BotStatus // without rooms
	running *bot             // nil while off
}

// New returns a Supervisor without a bot; Run starts it.
func New(o Options) *Supervisor {
	if o.Observe == nil {
		o.Observe = func(bool) {}
	}
	s := &Supervisor{options: o, restarts: make(chan chan<- struct{})}
	s.build = s.newTransport
	s.status = domain.BotStatus{Transport: domain.BotMatrix, State: domain.BotOff, Since: time.Now()}
	return s
}

// Run keeps the bot running until ctx ends. The old bot has ended before a new one starts, which reads the
// configuration again.
func (s *Supervisor) Run(ctx context.Context, gateway Gateway) error {
	var started chan<- struct{}
	for {
		life, end := context.WithCancel(ctx)
		ended := s.start(life, gateway)
		if started != nil {
			close(started)
		}
		select {
		case <-ctx.Done():
			end()
			<-ended
			return nil
		case started = <-s.restarts:
			end()
			<-ended
		}
	}
}

// start starts a bot that ends with ctx and returns a channel that is closed when it has ended.
func (s *Supervisor) start(ctx context.Context, gateway Gateway) <-chan struct{} {
	ended := make(chan struct{})
	config, err := gateway.Bot.Config(ctx)
	if err != nil {
		s.options.Log.ErrorContext(ctx, "bot configuration", "error", err)
		s.begin(config.Transport, nil, domain.BotFailed, domain.MessageOf(err))
		close(ended)
		return ended
	}
	chat, err := s.build(config)
	if err != nil {
		s.begin(config.Transport, nil, domain.BotOff, domain.MessageOf(err))
		close(ended)
		return ended
	}
	commands := commands{gateway: gateway, operators: s.options.Operators, log: s.options.Log, links: links(s.options.PublicURL)}
	b := &bot{chat: chat, gateway: gateway, state: s.options.State, answer: commands.answer, log: s.options.Log, observe: s.options.Observe, links: links(s.options.PublicURL)}
	b.report = func(state domain.BotState, detail string) { s.report(b, state, detail) }
	s.begin(config.Transport, b, domain.BotConnecting, "")
	go func() {
		defer close(ended)
		b.run(ctx)
	}()
	return ended
}

// Restart ends the bot and starts it with the stored configuration. It returns when the new one runs, which then
// connects by itself. When ctx ends first, that happens as soon as the old one has ended.
func (s *Supervisor) Restart(ctx context.Context) error {
	started := make(chan struct{})
	late := domain.Errorf(domain.Unavailable, "the old bot has not ended yet; the new one follows it")
	select {
	case s.restarts <- started:
	case <-ctx.Done():
		return late
	}
	select {
	case <-started:
		return nil
	case <-ctx.Done():
		return late
	}
}
