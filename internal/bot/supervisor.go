package bot

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
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
}

// Supervisor runs one bot at a time, with the stored configuration. Its methods are safe for concurrent use.
type Supervisor struct {
	options  Options
	build    func(domain.BotConfig) (Transport, error)
	restarts chan chan<- struct{} // each brings the channel to close once the new bot runs

	mu      sync.Mutex
	status  domain.BotStatus // without rooms
	running *bot             // nil while off
}

// New returns a Supervisor without a bot; Run starts it.
func New(o Options) *Supervisor {
	s := &Supervisor{options: o, restarts: make(chan chan<- struct{})}
	s.build = s.newTransport
	s.status = domain.BotStatus{Transport: domain.BotMatrix, State: domain.BotOff, SinceMS: time.Now().UnixMilli()}
	return s
}

// Run keeps the bot running until ctx ends. The old bot has ended before a new one starts, which reads the
// configuration anew.
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
	config, err := gateway.BotConfig(ctx)
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
	commands := commands{gateway: gateway, operators: s.options.Operators, log: s.options.Log}
	b := &bot{chat: chat, gateway: gateway, state: s.options.State, answer: commands.answer, log: s.options.Log}
	b.report = func(state domain.BotState, detail string) { s.report(b, state, detail) }
	s.begin(config.Transport, b, domain.BotConnecting, "")
	go func() {
		defer close(ended)
		b.run(ctx)
	}()
	return ended
}

func (s *Supervisor) begin(transport domain.BotTransport, b *bot, state domain.BotState, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = b
	s.status = domain.BotStatus{
		Transport: cmp.Or(transport, s.status.Transport), State: state, Detail: detail, SinceMS: time.Now().UnixMilli(),
	}
}

// report notes the state of b, unless another has taken its place.
func (s *Supervisor) report(b *bot, state domain.BotState, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != b {
		return
	}
	if s.status.State != state {
		s.status.SinceMS = time.Now().UnixMilli()
		s.options.Log.Info("bot", "transport", s.status.Transport, "state", state)
	}
	s.status.State, s.status.Detail = state, detail
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

// Status returns the bot's live state.
func (s *Supervisor) Status() domain.BotStatus {
	b, status := s.current()
	status.Rooms = []string{}
	if b == nil {
		return status
	}
	for _, room := range b.chat.Rooms() {
		status.Rooms = append(status.Rooms, room.Name)
	}
	slices.Sort(status.Rooms)
	if status.State == domain.BotConnected && len(status.Rooms) == 0 {
		status.Detail = b.chat.Hint()
	}
	return status
}

func (s *Supervisor) current() (*bot, domain.BotStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running, s.status
}

// SendTest sends a test message to every room. It returns BadGateway with the reason when any of them did not get it.
func (s *Supervisor) SendTest(ctx context.Context) error {
	b, _ := s.current()
	status := s.Status()
	switch {
	case b == nil || status.State != domain.BotConnected:
		return domain.Errorf(domain.BadGateway, "the bot is %s. %s", status.State, status.Detail)
	case len(status.Rooms) == 0:
		return domain.Errorf(domain.BadGateway, "%s", status.Detail)
	}
	message := Message{{Plain("This is a test message from "), Bold("Switchyard"), Plain(". What happens in your projects is posted here.")}}
	key := "test-" + rand.Text()
	return b.call(ctx, func(ctx context.Context) error {
		var failed []string
		var causes []error
		for _, room := range b.chat.Rooms() {
			if err := b.chat.Send(ctx, room.ID, key, message); err != nil {
				failed = append(failed, room.Name)
				causes = append(causes, err)
			}
		}
		if len(failed) == 0 {
			return nil
		}
		reason := domain.MessageOf(causes[0])
		switch {
		case errors.Is(causes[0], errRefused):
			reason = "the room refused the message"
		case causes[0] == context.DeadlineExceeded: // the chat server asks to wait, if it is not slow
			reason = "it takes too long"
		}
		return domain.WrapError(domain.BadGateway, errors.Join(causes...), "not sent to "+strings.Join(failed, ", ")+": "+reason)
	})
}

// newTransport returns the transport that config asks for, or an Invalid error that says what is missing for it.
func (s *Supervisor) newTransport(config domain.BotConfig) (Transport, error) {
	var missing []string
	want := func(label, value string) {
		if value == "" {
			missing = append(missing, label)
		}
	}
	switch config.Transport {
	case domain.BotMatrix:
		want("Homeserver URL", text(config.Homeserver))
		want("Bot username", text(config.Username))
		want("Password", text(config.Password))
	case domain.BotTeam:
		want("Bot token", text(config.TeamBotToken))
		want("Signing secret", text(config.TeamSigningSecret))
	default:
		return nil, domain.CheckTransport(config.Transport)
	}
	if len(missing) > 0 {
		return nil, domain.Errorf(domain.Invalid, "Not set up: fill in %s and save.", strings.Join(missing, ", "))
	}
	if config.Transport == domain.BotTeam {
		return newTeam(s.options, *config.TeamBotToken, *config.TeamSigningSecret), nil
	}
	return newMatrix(s.options, *config.Homeserver, *config.Username, *config.Password), nil
}

// text returns a setting as a string, "" when it is unset.
func text[T ~string](value *T) string {
	if value == nil {
		return ""
	}
	return string(*value)
}
