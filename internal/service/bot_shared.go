package service

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// BotStore is where several gateways keep what they share of the bot. One of them runs it.
type BotStore interface {
	// BotConfig returns the stored configuration and its version, which grows with each save; 0 before the first.
	BotConfig(ctx context.Context) (c domain.BotConfig, version int64, err error)
	SaveBotConfig(ctx context.Context, c domain.BotConfig) error
	// ImportBotConfig stores a configuration unless there is one. It reports whether it did.
	ImportBotConfig(ctx context.Context, c domain.BotConfig) (imported bool, err error)

	// BotRun returns the state of the running bot that was stored last. It returns NotFound before that.
	BotRun(ctx context.Context) (domain.BotRun, error)
	SetBotRun(ctx context.Context, r domain.BotRun) error

	// AskBotTest asks the gateway that runs the bot for a test message. That gateway takes the request, once, with TakeBotTest,
	// which returns NotFound when there is none, and answers why the test failed, or "".
	AskBotTest(ctx context.Context, id string) error
	TakeBotTest(ctx context.Context) (id string, err error)
	AnswerBotTest(ctx context.Context, id, answer string) error
	BotTestAnswer(ctx context.Context, id string) (answer string, answered bool, err error)
}

// SharedBot is what several gateways need to share the bot.
type SharedBot struct {
	Store   BotStore
	Duty    Duties // DutyBot says which of them runs the bot
	Gateway string // this one's name
	// Cursor returns the id up to which the bot, wherever it runs, has posted the stream.
	Cursor func(ctx context.Context) (int64, error)
}

const (
	// botInterval is how often the gateway that runs the bot stores its state, if that has changed.
	botInterval = 250 * time.Millisecond
	// botAnswerInterval is how often an answer is checked for, with or without a notice.
	botAnswerInterval = 250 * time.Millisecond
)

// sharedRunner is the bot that one of several gateways runs, as each of them sees it. On the others the local runner only
// receives what chat servers send.
type sharedRunner struct {
	SharedBot
	local   BotRunner
	changes Changes
	log     *slog.Logger
	since   time.Time // when it was made
	testing sync.WaitGroup

	mu      sync.Mutex
	run     domain.BotRun // as last stored
	started int64         // the version of the configuration that local has
}

// runs returns the context in which the gateway that runs the bot writes, false when another one runs it.
func (s *sharedRunner) runs(ctx context.Context) (context.Context, bool) {
	epoch, ok := s.Duty.Epoch(domain.DutyBot)
	return domain.WithDuty(ctx, domain.Duty{Name: domain.DutyBot, Epoch: epoch}), ok
}

// Config returns the configuration for a bot that starts with it.
func (s *sharedRunner) Config(ctx context.Context) (domain.BotConfig, error) {
	c, version, err := s.Store.BotConfig(ctx)
	if err != nil {
		version = unknownVersion
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = version
	return c, err
}

// unknownVersion is the version of a configuration that could not be read.
const unknownVersion = -1

// Status is the state of the bot, wherever it runs.
func (s *sharedRunner) Status() domain.BotStatus {
	if _, here := s.Duty.Epoch(domain.DutyBot); here {
		return s.local.Status()
	}
	if status := s.last().Status; status.State != "" {
		return status
	}
	return domain.BotStatus{Transport: domain.BotMatrix, State: domain.BotConnecting, Since: s.since, Rooms: []string{}}
}

func (s *sharedRunner) last() domain.BotRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

func (s *sharedRunner) Posted(ctx context.Context) (int64, error) {
	if s.Status().State == domain.BotOff {
		return s.local.Posted(ctx) // nothing waits to be posted
	}
	return s.Cursor(ctx)
}

// Restart waits until the gateway that runs the bot has started it with the stored configuration, or a later one.
func (s *sharedRunner) Restart(ctx context.Context) error {
	_, version, err := s.Store.BotConfig(ctx)
	if err != nil {
		return err
	}
	return s.await(ctx, func() (bool, error) {
		run, err := s.Store.BotRun(ctx)
		if domain.CodeOf(err) == domain.NotFound {
			return false, nil
		}
		return run.Version >= version, err
	}, domain.Errorf(domain.Unavailable, "the gateway that runs the bot has not started it again yet; it will"))
}

// SendTest has the gateway that runs the bot send a test message to every room.
func (s *sharedRunner) SendTest(ctx context.Context) error {
	if _, here := s.runs(ctx); here {
		return s.local.SendTest(ctx)
	}
	id := rand.Text()
	if err := s.Store.AskBotTest(ctx, id); err != nil {
		return err
	}
	var answer string
	err := s.await(ctx, func() (answered bool, err error) {
		answer, answered, err = s.Store.BotTestAnswer(ctx, id)
		return answered, err
	}, domain.Errorf(domain.BadGateway, "no gateway that runs the bot has answered"))
	if err == nil && answer != "" {
		err = domain.Errorf(domain.BadGateway, "%s", answer)
	}
	return err
}

// await waits until done reports true. It returns late when ctx ends before that.
func (s *sharedRunner) await(ctx context.Context, done func() (bool, error), late error) error {
	tick := time.NewTicker(botAnswerInterval)
	defer tick.Stop()
	for {
		changed := s.changes.Changed(domain.TopicBot)
		ok, err := done()
		switch {
		case ctx.Err() != nil:
			return late
		case ok || err != nil:
			return err
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return late
		}
	}
}
