package bot

import (
	"context"
	"errors"
	"time"
)

// Room is a room or channel that the bot is a member of.
type Room struct {
	ID   string
	Name string // as people know it
	// MutedSince is since when the bot may not post here, zero if it may.
	MutedSince time.Time
}

// Question is a message that somebody sent where the bot reads it.
type Question struct {
	Sender    string // user id
	Text      string // without the bot's own name before it
	Addressed bool   // it was sent to the bot
}

// Answer returns the reply to a question; false if there is none.
type Answer func(ctx context.Context, q Question) (Message, bool)

// Transport is the bot's side of one chat network. Errors carry a message for people that says what to do; with
// the code Unauthorized, retrying is pointless until somebody does it.
type Transport interface {
	// Account names network and user, the same after every restart.
	Account() string
	// Connect logs in and reads which rooms the bot is a member of. It is called again after any failure.
	Connect(ctx context.Context) error
	// Receive answers messages until ctx ends or the connection fails.
	Receive(ctx context.Context, answer Answer) error
	// Refresh reads again which rooms the bot is a member of, unless the network reports changes by itself.
	Refresh(ctx context.Context) error
	// Rooms returns the rooms that the bot is a member of, as far as is known.
	Rooms() []Room
	// Send posts m under a key that is the same whenever it is sent. It returns errRefused when this room does not accept
	// the message and others may. A request under way ends before Send returns, whether ctx ends or not.
	Send(ctx context.Context, room, key string, m Message) error
	// Posted reports whether a room has the message of this key already, as far as the network can tell.
	Posted(ctx context.Context, room, key string) (bool, error)
	// Hint says what to do when the bot is in no room.
	Hint() string
}

// errRefused is for a message that one room does not accept.
var errRefused = errors.New("the room refused the message")
