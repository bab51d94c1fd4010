// Package bot is the chat bot: it posts the merged stream to every room that it is a member of, and answers commands.
//
// The rules are in package service, which the bot uses through Gateway. The messages are the same on every chat
// network; a Transport sends and receives them. The package must never use the database, the configuration file or
// project servers.
package bot

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// Gateway is what the bot needs from the service.
type Gateway struct {
	Bot interface {
		Config(ctx context.Context) (domain.BotConfig, error)
	}
	Events interface {
		Page(ctx context.Context, q domain.EventQuery) (domain.EventPage, error)
		LastID() int64
		Changed() <-chan struct{}
	}
	Projects interface {
		Registry() *domain.Registry
		Switch(ctx context.Context, name string) error
	}
	Pipelines interface {
		All(ctx context.Context, maxAge time.Duration) (*domain.Registry, []domain.ProjectPipeline)
		StageWord(project, stage string) string
	}
	Alerts interface {
		List(ctx context.Context) domain.Alerts
		Acknowledge(ctx context.Context, key string, duration time.Duration) error
	}
	Stories interface {
		Get(ctx context.Context, project, id string) (domain.Story, error)
		Patch(ctx context.Context, project, id string, change []byte) (status int, body []byte, err error)
	}
	Search interface {
		Stories(ctx context.Context, text string, limit int) ([]domain.StoryRef, error)
	}
	Flow interface {
		Sentence(ctx context.Context, zone *time.Location, projects ...string) (string, error)
		Forecast(ctx context.Context, project string, items int) (string, error)
	}
	Questions interface {
		Recent() []domain.Question
		Changed() <-chan struct{}
		Get(ctx context.Context, id int64) (domain.Question, error)
		Answer(ctx context.Context, id int64, given domain.Answer) (domain.Question, error)
	}
	Sessions interface {
		List() []domain.AgentSession
	}
	Agents interface {
		Alive() []domain.Agent
		Assign(ctx context.Context, id, project string) (domain.Agent, error)
	}
}

// State stores small values across restarts; a missing one is "".
type State interface {
	State(ctx context.Context, key string) (string, error)
	SetState(ctx context.Context, key, value string) error
	// RecordBotRequest records a request of a chat server and reports whether it is new.
	RecordBotRequest(ctx context.Context, id string) (first bool, err error)
}

// Load returns value overlaid with what Save has stored under a key; value itself if nothing is stored.
func Load[T any](ctx context.Context, state State, key string, value T) (T, error) {
	text, err := state.State(ctx, key)
	if err != nil || text == "" {
		return value, err
	}
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return value, domain.WrapError(domain.Internal, err, "what the bot has stored cannot be read")
	}
	return value, nil
}

// Save stores a value under a key, even while the bot is stopping: what was posted must not be forgotten.
func Save(ctx context.Context, state State, key string, value any) error {
	return state.SetState(context.WithoutCancel(ctx), key, string(domain.EncodeJSON(value)))
}

// keyOf returns the key of what in a room, the same at each attempt.
func keyOf(room, what string) string {
	sum := sha256.Sum256([]byte(room))
	return fmt.Sprintf("%s-%x", what, sum[:6])
}

// Pauses after failures; they are shorter while the last connection was a good one. After a failure that only a person
// can resolve, the pause is long: servers lock out accounts that keep sending a wrong password. A newly saved
// configuration is always tried at once.
const (
	firstPause  = time.Second
	goodPause   = 10 * time.Second
	maxPause    = time.Minute
	refusePause = 5 * time.Minute
	goodAfter   = 5 * time.Second // the least time that a good connection lives
)

// bot runs with one configuration.
type bot struct {
	Options
	chat    Transport
	gateway Gateway
	answer  Answer
	report  func(domain.BotState, string)
	posts   bool            // false for a bot that only answers
	life    context.Context // until the bot is stopped
	calls   sync.RWMutex    // held for reading by each call, and for writing forever once the bot has ended
}

// run connects and works while the bot lives. When it returns, all of the bot's goroutines have ended.
func (b *bot) run() {
	defer b.calls.Lock()
	backoff := supervise.Backoff{First: firstPause, Max: maxPause}
	b.report(domain.BotConnecting, "")
	for {
		lived, err := b.attempt()
		if b.life.Err() != nil {
			return
		}
		if lived >= goodAfter {
			backoff = supervise.Backoff{First: firstPause, Max: goodPause}
		} else if lived > 0 {
			backoff.Max = maxPause
		}
		pause := backoff.Next()
		if domain.CodeOf(err) == domain.Unauthorized {
			pause = refusePause
		}
		b.Log.WarnContext(b.life, "bot failed", "error", err, "again_in", pause)
		b.report(domain.BotFailed, domain.MessageOf(err))
		if !supervise.Sleep(b.life, pause) {
			return
		}
	}
}

// attempt connects once and works until something fails. It returns how long the connection has lived, 0 if there was
// none.
func (b *bot) attempt() (lived time.Duration, err error) {
	n := notifier{bot: b}
	if b.posts {
		if err := n.load(b.life); err != nil { // first, since a new bot posts the events from now on
			return 0, err
		}
	}
	if err := withRecover(func() error { return b.chat.Connect(b.life) }); err != nil {
		return 0, err
	}
	b.report(domain.BotConnected, "")
	began := time.Now()
	ctx, cancel := context.WithCancel(b.life)
	defer cancel()
	works := []func() error{func() error { return b.chat.Receive(ctx, b.answer) }}
	if b.posts {
		works = append(works, func() error { return n.run(ctx) }, func() error { return b.ask(ctx) })
	}
	ends := make(chan error, len(works))
	for _, work := range works {
		supervise.Go(b.Log, "bot", func() { ends <- withRecover(work) })
	}
	err = <-ends
	cancel()
	for range works[1:] {
		<-ends
	}
	return time.Since(began), err
}

// call runs f while the bot lives: when the bot stops, it cancels f and waits for it.
func (b *bot) call(ctx context.Context, f func(context.Context) error) error {
	if !b.calls.TryRLock() {
		return domain.Errorf(domain.BadGateway, "the bot is restarting; try again in a moment")
	}
	defer b.calls.RUnlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.life, cancel)()
	return withRecover(func() error { return f(ctx) })
}

func withRecover(f func() error) error {
	err := supervise.Call(f)
	if supervise.IsPanic(err) {
		return domain.WrapError(domain.Internal, err,
			"the bot failed with an internal error, which is in the log; it will try again")
	}
	return err
}
