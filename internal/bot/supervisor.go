package bot

import (
	"context"
	"log/slog"
	"sync"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// Options are what a Supervisor is built from.
type Options struct {
	State State
	// Identity returns a text that belongs to the database behind State: a new or restored one has another.
	Identity   func(context.Context) (string, error)
	Log        *slog.Logger
	Operators  []string // user ids that may change things and invite the bot
	TeamAPIURL string   // method names are appended after a slash
	PublicURL  string   // the console's address, for links; "" for no links
	// Duty decides which of several gateways runs the bot, nil for a single gateway. On the others the bot only answers
	// requests of a chat server.
	Duty Duty
	// Seen remembers the handled requests of chat servers for several gateways, nil to remember them in State.
	Seen Seen
	// Observe, if not nil, is called after each message about events that a room accepted or refused.
	Observe func(refused bool)
}

// Duty says which duties this gateway has.
type Duty interface {
	// Epoch returns the epoch of a duty, false if it is not this gateway's.
	Epoch(duty string) (epoch int64, ok bool)
	// Changed returns a channel that is closed when this gateway gets or loses duties.
	Changed() <-chan struct{}
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
	if o.Identity == nil {
		o.Identity = func(context.Context) (string, error) { return "", nil }
	}
	if o.Observe == nil {
		o.Observe = func(bool) {}
	}
	s := &Supervisor{options: o, restarts: make(chan chan<- struct{})}
	s.build = s.newTransport
	s.status = domain.BotStatus{Transport: domain.BotMatrix, State: domain.BotOff, Since: clock.Now()}
	return s
}

// Run keeps the bot running until ctx ends. It restarts the bot, which then reads the configuration again, on Restart and when
// this gateway gets or loses the duty. The old bot ends before the new one starts.
func (s *Supervisor) Run(ctx context.Context, gateway Gateway) error {
	var started chan<- struct{}
	for {
		duty, ours, moved := s.duty()
		life, end := context.WithCancel(domain.WithDuty(ctx, duty))
		ended := s.start(life, gateway, ours)
		if started != nil {
			close(started)
			started = nil
		}
		for same := true; same; {
			select {
			case <-ctx.Done():
				end()
				<-ended
				return nil
			case started = <-s.restarts:
				same = false
			case <-moved:
				var now domain.Duty
				var here bool
				now, here, moved = s.duty()
				same = now == duty && here == ours
			}
		}
		end()
		<-ended
	}
}

// duty returns the duty to run the bot, whether it is this gateway's, and a channel that is closed when that may change.
func (s *Supervisor) duty() (d domain.Duty, ours bool, moved <-chan struct{}) {
	if s.options.Duty == nil {
		return domain.Duty{}, true, nil
	}
	moved = s.options.Duty.Changed()
	if epoch, here := s.options.Duty.Epoch(domain.DutyBot); here {
		return domain.Duty{Name: domain.DutyBot, Epoch: epoch}, true, moved
	}
	return domain.Duty{}, false, moved
}

// start starts a bot that ends with ctx and returns a channel that is closed when it has ended. Unless it is ours, it only
// answers requests of a chat server.
func (s *Supervisor) start(ctx context.Context, gateway Gateway, ours bool) <-chan struct{} {
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
	if _, sends := chat.(*team); !ours && !sends { // only Slack sends requests
		s.begin(config.Transport, nil, domain.BotConnecting, "")
		close(ended)
		return ended
	}
	commands := commands{gateway: gateway, operators: s.options.Operators, log: s.options.Log, links: links(s.options.PublicURL)}
	b := &bot{chat: chat, gateway: gateway, state: s.options.State, answer: commands.answer, log: s.options.Log, observe: s.options.Observe, identity: s.options.Identity, links: links(s.options.PublicURL), posts: ours}
	b.report = func(state domain.BotState, detail string) { s.report(b, state, detail) }
	s.begin(config.Transport, b, domain.BotConnecting, "")
	supervise.Go(s.options.Log, "bot", func() {
		defer close(ended)
		b.run(ctx)
	})
	return ended
}

// Restart ends the bot and starts it with the stored configuration. It returns when the new one runs, before it has
// connected. If ctx ends first, it returns Unavailable, and the new bot starts once the old one has ended.
func (s *Supervisor) Restart(ctx context.Context) error {
	started := make(chan struct{})
	late := domain.Errorf(domain.Unavailable, "the old bot has not stopped yet; the new one starts after it")
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
