package bot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/neterr"
	"switchyard/internal/supervise"
)

// Room is a room or channel that the bot is a member of.
type Room struct {
	ID   string
	Name string // as people know it
	// MutedSince is the time since which the bot may not post here, zero if it may.
	MutedSince time.Time
}

// Question is a message that somebody sent where the bot reads it.
type Question struct {
	Sender    string // user id
	Room      string // the id of the room it was sent in
	Text      string // without the bot's own name before it
	Addressed bool   // it is addressed to the bot
	About     string // the message that it replies or reacts to, by its id as Send returns it; "" for none
	Reaction  string // an emoji, instead of a text; "" for none
	OnlyReply bool   // it can only be a reply to a message of the bot
}

// Answer returns the reply to a question; false if there is none.
type Answer func(ctx context.Context, q Question) (Message, bool)

// Transport connects the bot to one chat network. Errors have a message for people that says what to do; with
// the code Unauthorized, retrying is pointless until it is done.
type Transport interface {
	// Account identifies the network and the user, the same after every restart.
	Account() string
	// Connect logs in and reads which rooms the bot is a member of. It is called again after each failure.
	Connect(ctx context.Context) error
	// Receive answers messages until ctx ends or the connection fails.
	Receive(ctx context.Context, answer Answer) error
	// Refresh reads again which rooms the bot is a member of, unless the network reports changes by itself.
	Refresh(ctx context.Context) error
	// Rooms returns the rooms that the bot is known to be a member of.
	Rooms() []Room
	// Send posts m under a key that is the same at each attempt, and returns the message's id. It returns ErrRefused when
	// this room does not accept the message but others may. Even if ctx ends, Send returns only after its request has
	// ended.
	Send(ctx context.Context, room, key string, m Message) (id string, err error)
	// Posted reports whether a room already has the message with this key, as far as the network can tell.
	Posted(ctx context.Context, room, key string) (bool, error)
	// Hint says what to do when the bot is in no room.
	Hint() string
}

// Webhook is a Transport whose network sends requests. They come to every gateway, whichever runs the bot.
type Webhook interface {
	Transport
	ServeWebhook(w http.ResponseWriter, r *http.Request, ask Ask)
}

// Ask answers a question at once.
type Ask func(ctx context.Context, q Question) (Message, error)

// ErrRefused means that one room does not accept a message.
var ErrRefused = errors.New("the room refused the message")

// newTransport returns the configured transport, or an Invalid error that says which settings are missing.
func newTransport(o Options, config domain.BotConfig) (Transport, error) {
	if err := domain.CheckTransport(config.Transport); err != nil {
		return nil, err
	}
	var missing []string
	for _, setting := range config.Transport.Network().Settings {
		if strings.TrimSpace(config.Settings[setting.Key].Reveal()) == "" {
			missing = append(missing, setting.Label)
		}
	}
	if len(missing) > 0 {
		return nil, domain.Errorf(domain.Invalid, "Not set up: fill in %s and save.", strings.Join(missing, ", "))
	}
	return o.Transports[config.Transport](o, config.Settings), nil
}

const (
	// CallLimit is the time limit of a call to a chat server, which includes a homeserver's calls to others.
	CallLimit = 60 * time.Second
	// maxAnswer is the largest answer of a chat server, in bytes. Syncs of many rooms are the largest.
	maxAnswer = 16 << 20
	// minRetry is the shortest pause after a rate limit, whatever the answer says.
	minRetry = 500 * time.Millisecond
	// stopGrace is how long a call that writes may continue after the bot was stopped.
	stopGrace = 5 * time.Second
)

// WaitOut repeats a call for as long as it is refused with a rate limit. limit returns the pause that the refusal
// names, false for any other result.
func WaitOut(ctx context.Context, call func() error, limit func(error) (time.Duration, bool)) error {
	for {
		err := call()
		pause, limited := limit(err)
		if !limited {
			return err
		}
		if !supervise.Sleep(ctx, max(minRetry, pause)) {
			return ctx.Err()
		}
	}
}

// Finish makes a call that writes. The end of ctx does not abort it at once, since it would be unknown whether the chat
// server has acted on it. A deadline of ctx still applies.
func Finish(ctx context.Context, call func(context.Context) error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	inner, cancel := context.WithTimeout(context.WithoutCancel(ctx), CallLimit)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			supervise.Sleep(inner, stopGrace)
		}
		cancel()
	})()
	return call(inner)
}

// NewHTTPClient returns a client for a chat server.
func NewHTTPClient(o Options) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if o.Dial != nil {
		transport.DialContext = o.Dial
	}
	return neterr.Client(transport, maxAnswer)
}

// Unreachable explains why there was no answer.
func Unreachable(err error, host string) error {
	return domain.WrapError(domain.BadGateway, err, fmt.Sprintf(
		"No answer from %s: %s. Check the address; the bot keeps trying.", host, neterr.Describe(err, 0)))
}

// PlainText answers a request of a chat server with a text.
func PlainText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // the chat server may be gone
}
