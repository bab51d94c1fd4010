package service

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

type BotRunner interface {
	// Restart stops the bot, starts it with the stored configuration, and returns once the new one runs. If ctx ends
	// first, the restart happens as soon as the old bot has ended.
	Restart(ctx context.Context) error
	Status() domain.BotStatus
	// Posted returns the id up to which the bot has posted the stream, math.MaxInt64 while it is off. The leader asks.
	Posted(ctx context.Context) (id int64, err error)
	// SendTest sends a test message to every room, Tell somebody's message to the team. They return BadGateway with the
	// reason if a room did not get it.
	SendTest(ctx context.Context) error
	Tell(ctx context.Context, t domain.Announcement) error
}

const (
	// saveLimit covers a whole save, with the restart and the saves before it, so that it is answered within 10 s.
	saveLimit = 9 * time.Second
	testLimit = 20 * time.Second
)

// BotStore keeps the state of a bot that several gateways share, one of which runs it.
type BotStore interface {
	// BotConfig returns the stored configuration and its version, which increases with each save.
	BotConfig(ctx context.Context) (c domain.BotConfig, version int64, err error)
	SaveBotConfig(ctx context.Context, c domain.BotConfig) error
	// ImportBotConfig stores a configuration if there is none yet, and reports whether it did.
	ImportBotConfig(ctx context.Context, c domain.BotConfig) (imported bool, err error)
	// BotRun returns the last stored state of the running bot, or NotFound.
	BotRun(ctx context.Context) (domain.BotRun, error)
	SetBotRun(ctx context.Context, token int64, r domain.BotRun) error
	// AskBotTest asks the gateway that runs the bot for a message, "" for a test message. That gateway takes the
	// request once and answers with the reason for a failure, or "". TakeBotTest returns NotFound if there is none.
	AskBotTest(ctx context.Context, id, message string) error
	TakeBotTest(ctx context.Context) (id, message string, err error)
	AnswerBotTest(ctx context.Context, id, answer string) error
	BotTestAnswer(ctx context.Context, id string) (answer string, answered bool, err error)
}

type SharedBot struct {
	Store   BotStore
	Leader  domain.Leadership // the leader runs the bot
	Gateway string            // the name of this gateway
}

const (
	// botInterval is how often the gateway that runs the bot stores its state if it has changed.
	botInterval = 250 * time.Millisecond
	// botAnswerInterval is how often to check for an answer when no notification arrives.
	botAnswerInterval = 250 * time.Millisecond
)

// sharedRunner is the BotRunner of each of several gateways that share the bot. Where the bot does not run, the local
// runner only receives requests from chat servers.
type sharedRunner struct {
	SharedBot
	local   BotRunner
	changes Changes
	log     *slog.Logger
	since   time.Time // when it was made
	testing sync.WaitGroup

	mu      sync.Mutex
	run     domain.BotRun // as last stored
	started int64         // the version of local's configuration
}

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

const unknownVersion = -1

func (s *sharedRunner) Status() domain.BotStatus {
	if s.Leader.Leads() {
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

func (s *sharedRunner) Posted(ctx context.Context) (int64, error) { return s.local.Posted(ctx) }

// Restart waits until the gateway that runs the bot has started it with the stored configuration or a later one.
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
	}, domain.Errorf(domain.Unavailable, "the gateway that runs the bot has not restarted it yet, but will"))
}

func (s *sharedRunner) SendTest(ctx context.Context) error {
	if s.Leader.Leads() {
		return s.local.SendTest(ctx)
	}
	return s.ask(ctx, "")
}

func (s *sharedRunner) ask(ctx context.Context, message string) error {
	id := rand.Text()
	if err := s.Store.AskBotTest(ctx, id, message); err != nil {
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

// await waits until done returns true. It returns late if ctx ends first.
func (s *sharedRunner) await(ctx context.Context, done func() (bool, error), late error) error {
	for {
		changed := s.changes.Changed(domain.TopicBot)
		ok, err := done()
		switch {
		case ctx.Err() != nil:
			return late
		case ok || err != nil:
			return err
		}
		supervise.Await(ctx, changed, botAnswerInterval)
	}
}

// loop gives the local bot every new configuration and publishes its state to all gateways, until ctx ends.
func (s *sharedRunner) loop(ctx context.Context) error {
	defer s.testing.Wait()
	check, report := time.NewTicker(reloadInterval), time.NewTicker(botInterval)
	defer check.Stop()
	defer report.Stop()
	for {
		changed, moved := s.changes.Changed(domain.TopicBot), s.Leader.Changed()
		if err := s.sync(ctx); err != nil && ctx.Err() == nil && domain.CodeOf(err) != domain.Unavailable {
			s.log.WarnContext(ctx, "cannot update the shared state of the bot", "error", err)
		}
		for current := true; current; {
			select {
			case <-changed:
				current = false
			case <-moved:
				current = false
			case <-check.C:
				current = false
			case <-report.C:
				current = !s.Leader.Leads() || reflect.DeepEqual(asStored(s.local.Status()), s.last().Status)
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// asStored returns a status as it would be read back from the store.
func asStored(status domain.BotStatus) domain.BotStatus {
	status.Since = time.UnixMilli(status.Since.UnixMilli()).UTC() // as in JSON, on any machine
	if status.Rooms == nil {
		status.Rooms = []string{}
	}
	return status
}

// sync reads changes from the store and, if the bot runs here, stores its state.
func (s *sharedRunner) sync(ctx context.Context) error {
	_, version, err := s.Store.BotConfig(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	isNew := version != s.started
	s.mu.Unlock()
	if isNew {
		limited, cancel := context.WithTimeout(ctx, saveLimit)
		err := s.local.Restart(limited)
		cancel()
		if err != nil {
			return err
		}
	}
	run, err := s.Store.BotRun(ctx)
	if err != nil && domain.CodeOf(err) != domain.NotFound {
		return err
	}
	token, leads := s.Leader.Token()
	if !leads {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.run = run
		return nil
	}
	s.mu.Lock()
	now := domain.BotRun{Status: asStored(s.local.Status()), Version: s.started, Gateway: s.Gateway}
	s.run = now
	s.mu.Unlock()
	if now.Version != run.Version || now.Gateway != run.Gateway || !reflect.DeepEqual(now.Status, run.Status) {
		if err := s.Store.SetBotRun(ctx, token, now); err != nil {
			return err
		}
	}
	return s.answerTests(ctx)
}

func (s *sharedRunner) answerTests(ctx context.Context) error {
	for {
		id, message, err := s.Store.TakeBotTest(ctx)
		if domain.CodeOf(err) == domain.NotFound {
			return nil
		}
		if err != nil {
			return err
		}
		s.testing.Add(1)
		supervise.Go(s.log, "message for the rooms", func() {
			defer s.testing.Done()
			limited, cancel := context.WithTimeout(ctx, testLimit)
			defer cancel()
			answer := ""
			if err := s.send(limited, message); err != nil {
				answer = domain.MessageOf(err)
			}
			if err := s.Store.AnswerBotTest(context.WithoutCancel(ctx), id, answer); err != nil {
				s.log.WarnContext(ctx, "cannot store the result of a message", "error", err)
			}
		})
	}
}

func (s *sharedRunner) send(ctx context.Context, message string) error {
	if message == "" {
		return s.local.SendTest(ctx)
	}
	var t domain.Announcement
	if err := json.Unmarshal([]byte(message), &t); err != nil {
		return err
	}
	return s.local.Tell(ctx, t)
}
