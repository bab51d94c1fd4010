package bot

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"switchyard/internal/domain"
)

// How events become messages: up to burstEvents within burstWindow are posted one by one, more become one digest.
// Events are posted when none has followed for settle, in order to see whether they are a burst.
const (
	burstEvents = 5
	burstWindow = 10 * time.Second
	settle      = time.Second
)

// digestPage is the number of events read at once for a digest.
const digestPage = 1000

// outboxKey is where the outbox is kept.
const outboxKey = "bot.outbox"

// outbox is the durable position in the merged stream: what was posted, and what is being posted.
type outbox struct {
	Cursor int64  `json:"cursor"` // everything up to this event is posted
	Batch  *batch `json:"batch,omitempty"`
}

// batch is a range of events that is being posted. It is stored before the first message and after each, so that
// whoever continues it sends the same messages under the same keys.
type batch struct {
	Account string   `json:"account"`
	To      int64    `json:"to"`
	Digest  bool     `json:"digest"`
	Rooms   []string `json:"rooms"`
	Sent    int      `json:"sent"` // messages that are done, counting each room
}

// notifier posts the merged stream to every room, in order.
type notifier struct {
	chat    Transport
	gateway Gateway
	state   State
	log     *slog.Logger

	outbox outbox
	posted []time.Time // of each event posted within the last burstWindow
}

// run posts what the outbox says is due, and then what comes, until ctx ends or a message cannot be sent.
func (n *notifier) run(ctx context.Context) error {
	for {
		if n.outbox.Batch == nil {
			if err := n.prepare(ctx); err != nil {
				return err
			}
		}
		if err := n.deliver(ctx); err != nil {
			return err
		}
	}
}

// load reads the outbox, before run. Without one the bot starts at now; a batch that another account began is begun anew.
// It stores what it read: who cannot note what is posted must not post, or would post the same again and again.
func (n *notifier) load(ctx context.Context) error {
	stored, err := n.state.State(ctx, outboxKey)
	if err != nil {
		return err
	}
	if stored == "" {
		n.outbox = outbox{Cursor: n.gateway.LastEventID()}
		return n.save(ctx)
	}
	if err := json.Unmarshal([]byte(stored), &n.outbox); err != nil {
		return domain.WrapError(domain.Internal, err, "the bot's position in the stream cannot be read from the store")
	}
	if b := n.outbox.Batch; b != nil && b.Account != n.chat.Account() {
		n.outbox.Batch = nil
	}
	return n.save(ctx)
}

// save stores the outbox, even as the bot ends: what was posted must not be forgotten.
func (n *notifier) save(ctx context.Context) error {
	text, err := json.Marshal(n.outbox)
	if err != nil {
		return err
	}
	return n.state.SetState(context.WithoutCancel(ctx), outboxKey, string(text))
}

// prepare waits for events, decides how they are posted, and stores that.
func (n *notifier) prepare(ctx context.Context) error {
	events, asDigest, err := n.wait(ctx)
	if err != nil {
		return err
	}
	if err := n.chat.Refresh(ctx); err != nil {
		return err
	}
	b := &batch{Account: n.chat.Account(), To: events[len(events)-1].ID, Digest: asDigest}
	if asDigest {
		b.To = n.gateway.LastEventID()
	}
	for _, room := range n.chat.Rooms() {
		b.Rooms = append(b.Rooms, room.ID)
	}
	n.outbox.Batch = b
	return n.save(ctx)
}

// wait returns when it is time to post: with all events that are due, or with the first of them and true when they
// are too many to be posted one by one.
func (n *notifier) wait(ctx context.Context) ([]domain.Event, bool, error) {
	var first, last time.Time // when something new was seen
	seen := n.outbox.Cursor
	for {
		changed := n.gateway.EventsChanged()
		now := time.Now()
		if newest := n.gateway.LastEventID(); newest > seen {
			seen, last = newest, now
			if first.IsZero() {
				first = now
			}
		}
		var again <-chan time.Time
		if !first.IsZero() {
			due := first.Add(burstWindow)
			if quiet := last.Add(settle); now.Before(quiet) && now.Before(due) {
				again = time.After(min(quiet.Sub(now), due.Sub(now)))
			} else {
				events, err := n.gateway.Events(ctx, domain.EventQuery{After: n.outbox.Cursor, Limit: burstEvents + 1})
				if err != nil {
					return nil, false, err
				}
				n.forget(now)
				switch {
				case len(events) == 0:
					first = time.Time{}
				case len(events)+len(n.posted) <= burstEvents:
					return events, false, nil
				case len(events) > burstEvents && (len(n.posted) == 0 || !now.Before(due)):
					return events, true, nil
				default: // part of a burst that has been posted in part: gather the rest of it
					again = time.After(n.posted[0].Add(burstWindow).Sub(now))
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-changed:
		case <-again:
		}
	}
}

// forget drops what was posted before the window that ends now.
func (n *notifier) forget(now time.Time) {
	for len(n.posted) > 0 && !now.Before(n.posted[0].Add(burstWindow)) {
		n.posted = n.posted[1:]
	}
}

// deliver sends what is left of the batch to every room and moves the cursor behind it.
func (n *notifier) deliver(ctx context.Context) error {
	b := n.outbox.Batch
	if len(b.Rooms) > 0 {
		messages, err := n.messages(ctx, b)
		if err != nil {
			return err
		}
		for ; b.Sent < len(messages)*len(b.Rooms); b.Sent++ {
			if b.Sent > 0 {
				if err := n.save(ctx); err != nil {
					return err
				}
			}
			message, room := b.Sent/len(b.Rooms), b.Rooms[b.Sent%len(b.Rooms)]
			err := n.chat.Send(ctx, room, n.key(message, room), messages[message])
			if errors.Is(err, errRefused) {
				n.log.WarnContext(ctx, "bot: room left out", "room", room, "error", err)
			} else if err != nil {
				return err
			}
		}
		count := len(messages)
		if b.Digest {
			count = burstEvents // what follows within the window belongs to the burst
		}
		for range count {
			n.posted = append(n.posted, time.Now())
		}
	}
	n.outbox = outbox{Cursor: b.To}
	return n.save(ctx)
}

// messages says the batch's events: one message for each, or one for all.
func (n *notifier) messages(ctx context.Context, b *batch) ([]Message, error) {
	var all digest
	var messages []Message
	for after := n.outbox.Cursor; after < b.To; {
		events, err := n.gateway.Events(ctx, domain.EventQuery{After: after, Limit: digestPage})
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			after = e.ID
			switch {
			case e.ID > b.To:
			case b.Digest:
				all.add(e)
			default:
				messages = append(messages, Message{describe(e)})
			}
		}
	}
	if b.Digest {
		messages = []Message{all.message()}
	}
	return messages, nil
}

// key names one message to one room, the same whenever it is sent.
func (n *notifier) key(message int, room string) string {
	sum := sha256.Sum256([]byte(room))
	return fmt.Sprintf("events-%d-%d-%d-%x", n.outbox.Cursor, n.outbox.Batch.To, message, sum[:6])
}
