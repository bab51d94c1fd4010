package bot

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

type Options struct {
	// Transports make the transport of a network whose settings are all present.
	Transports map[domain.BotTransport]func(Options, map[string]domain.Secret) Transport
	// Dial connects to chat servers, nil for the network.
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	State State
	// Identity returns a text that identifies the database behind State: a new or restored one has a different text.
	Identity   func(context.Context) (string, error)
	Log        *slog.Logger
	Operators  []string // user ids that may change things and invite the bot
	TeamAPIURL string   // method names are appended after a slash
	PublicURL  string   // the console's address, for links; "" for no links
	// Leadership says which of several gateways runs the bot: the leader. It is nil for a single gateway. On the others
	// the bot only answers requests of a chat server.
	Leadership domain.Leadership
	// LeaderState returns the State of a bot that runs under the leader's fencing token; nil for a single gateway.
	LeaderState func(token int64) State
	// Observe, if not nil, is called after each message about events that a room accepted or refused.
	Observe func(refused bool)
}

// Supervisor runs one bot at a time, with the stored configuration. Its methods are safe for concurrent use.
type Supervisor struct {
	options  Options
	restarts chan chan<- struct{} // each carries the channel to close once the new bot runs
	heard    atomic.Int64         // the status's HeardMS

	mu      sync.Mutex
	status  domain.BotStatus // without rooms
	running *bot             // nil while off
}

// New returns a Supervisor without a bot; Run starts it.
func New(o Options) *Supervisor {
	if o.Observe == nil {
		o.Observe = func(bool) {}
	}
	if o.Leadership == nil {
		o.Leadership = domain.SoleGateway{}
	}
	s := &Supervisor{options: o, restarts: make(chan chan<- struct{})}
	s.status = domain.BotStatus{Transport: domain.BotNetworks[0].Transport, State: domain.BotOff, Since: clock.Now()}
	return s
}

// Run keeps the bot running until ctx ends. It restarts the bot, which then reads the configuration again, on Restart
// and when this gateway begins or ceases to lead. The old bot ends before the new one starts.
func (s *Supervisor) Run(ctx context.Context, gateway Gateway) error {
	var started chan<- struct{}
	for ctx.Err() == nil {
		turn, moved := s.turn()
		life, end := context.WithCancel(ctx)
		ended := s.start(life, gateway, turn)
		if started != nil {
			close(started)
			started = nil
		}
		for same := true; same; {
			select {
			case <-ctx.Done():
				same = false
			case started = <-s.restarts:
				same = false
			case <-moved:
				last := turn
				turn, moved = s.turn()
				same = turn == last
			}
		}
		end()
		<-ended
	}
	return nil
}

// turn is a period in which this gateway leads, or does not lead.
type turn struct {
	token int64 // the leader's fencing token
	leads bool
}

// turn returns the current turn and a channel that is closed when it may have ended.
func (s *Supervisor) turn() (now turn, moved <-chan struct{}) {
	moved = s.options.Leadership.Changed()
	now.token, now.leads = s.options.Leadership.Token()
	return now, moved
}

// start starts a bot that ends with ctx and returns a channel that is closed when it has ended.
func (s *Supervisor) start(ctx context.Context, gateway Gateway, turn turn) <-chan struct{} {
	b, status := s.newBot(ctx, gateway, turn)
	s.mu.Lock()
	status.Transport, status.Since = cmp.Or(status.Transport, s.status.Transport), clock.Now()
	s.running, s.status = b, status
	s.mu.Unlock()
	ended := make(chan struct{})
	if b == nil {
		close(ended)
		return ended
	}
	supervise.Go(b.Log, "bot", func() {
		defer close(ended)
		b.run()
	})
	return ended
}

// newBot returns a bot with the stored configuration, nil if there is none to run, and its status. Unless this gateway
// leads, the bot only answers requests of a chat server.
func (s *Supervisor) newBot(ctx context.Context, gateway Gateway, turn turn) (*bot, domain.BotStatus) {
	config, err := gateway.Bot.Config(ctx)
	status := domain.BotStatus{Transport: config.Transport, State: domain.BotConnecting}
	if err != nil {
		s.options.Log.ErrorContext(ctx, "bot configuration", "error", err)
		status.State, status.Detail = domain.BotFailed, domain.MessageOf(err)
		return nil, status
	}
	o := s.options
	if turn.token != 0 && o.LeaderState != nil {
		o.State = o.LeaderState(turn.token)
	}
	chat, err := newTransport(o, config)
	if err != nil {
		status.State, status.Detail = domain.BotOff, domain.MessageOf(err)
		return nil, status
	}
	if _, asked := chat.(Webhook); !turn.leads && !asked {
		return nil, status
	}
	commands := commands{o, gateway, links(o.PublicURL)}
	b := &bot{Options: o, chat: chat, gateway: gateway, posts: turn.leads, life: ctx}
	b.answer = func(ctx context.Context, q Question) (Message, bool) {
		reply, meant := commands.answer(ctx, q)
		if meant {
			s.heard.Store(clock.Now().UnixMilli())
		}
		return reply, meant
	}
	b.report = func(state domain.BotState, detail string) { s.report(b, state, detail) }
	return b, status
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
