package bot

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"switchyard/internal/domain"
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
	Text      string // without the bot's own name before it
	Addressed bool   // it is addressed to the bot
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
	// Send posts m under a key that is the same at each attempt. It returns ErrRefused when this room does not accept
	// the message but others may. Even if ctx ends, Send returns only after its request has ended.
	Send(ctx context.Context, room, key string, m Message) error
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
