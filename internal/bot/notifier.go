package bot

import (
	"context"
	"errors"
	"slices"
	"time"

	"switchyard/internal/domain"
)

// digestPage is the number of events that are read at once for a digest.
const digestPage = 1000

// notifier posts the merged stream to every room, in order.
type notifier struct {
	*bot
	database string // its identity

	outbox   outbox
	unsure   bool        // an earlier attempt may have sent the next message of the batch
	posted   []time.Time // of each event posted within the last burstWindow
	digested time.Time   // when the last digest was posted
}

// run posts the outbox's batch, and then new events, until ctx ends or a message cannot be sent.
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

// prepare waits for events, decides how they are posted, and stores them as a batch.
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
		b.To = n.gateway.Events.LastID()
	}
	for _, room := range n.chat.Rooms() {
		b.Rooms = append(b.Rooms, room.ID)
	}
	n.outbox.Batch = b
	return n.save(ctx)
}

// deliver sends the rest of the batch to every room and moves the cursor past it.
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
			if err := n.send(ctx, room, n.key(message, room), messages[message]); err != nil {
				return err
			}
		}
		if b.Digest {
			n.digested = time.Now()
		} else {
			n.posted = append(n.posted, slices.Repeat([]time.Time{time.Now()}, len(messages))...)
		}
	}
	n.outbox = outbox{Cursor: b.To}
	return n.save(ctx)
}

// send sends one message, unless the room already has it or does not accept it.
func (n *notifier) send(ctx context.Context, room, key string, m Message) error {
	if n.unsure {
		posted, err := n.chat.Posted(ctx, room, key)
		if err != nil {
			return err
		}
		n.unsure = false
		if posted {
			return nil
		}
	}
	err := n.chat.Send(ctx, room, key, m)
	if errors.Is(err, ErrRefused) {
		n.Log.WarnContext(ctx, "bot: room skipped", "room", room, "error", err)
		n.Observe(true)
		return nil
	}
	if err == nil {
		n.Observe(false)
	}
	return err
}

// messages returns the batch's messages: one for each event, or one for all.
func (n *notifier) messages(ctx context.Context, b *batch) ([]Message, error) {
	all := digest{links: links(n.PublicURL)}
	if b.Digest {
		all.acknowledged = n.gateway.Alerts.List(ctx).Acknowledged
	}
	var messages []Message
	for after := n.outbox.Cursor; after < b.To; {
		page, err := n.gateway.Events.Page(ctx, domain.EventQuery{After: after, Limit: digestPage})
		if err != nil {
			return nil, err
		}
		if len(page.Events) == 0 {
			break
		}
		for _, e := range page.Events {
			after = e.ID
			switch {
			case e.ID > b.To:
			case b.Digest:
				all.add(e)
			default:
				messages = append(messages, Message{links(n.PublicURL).describe(e)})
			}
		}
	}
	if b.Digest {
		messages = []Message{all.message()}
	}
	return messages, nil
}
