package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"switchyard/internal/domain"
)

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
		count, message, err := n.messages(ctx, b)
		if err != nil {
			return err
		}
		for ; b.Sent < count*len(b.Rooms); b.Sent++ {
			number, room := b.Sent/len(b.Rooms), b.Rooms[b.Sent%len(b.Rooms)]
			m, wanted := message(number, room)
			if !wanted {
				continue
			}
			if b.Sent > 0 {
				if err := n.save(ctx); err != nil {
					return err
				}
			}
			if err := n.send(ctx, room, n.key(number, room), m); err != nil {
				return err
			}
		}
		if b.Digest {
			n.digested = time.Now()
		} else {
			n.posted = append(n.posted, slices.Repeat([]time.Time{time.Now()}, count)...)
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
	_, err := n.chat.Send(ctx, room, key, m)
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

// messages returns how many messages the batch has, one for each event or one for all, and a function that returns one
// of them for a room, false if the room's rules exclude it.
func (n *notifier) messages(ctx context.Context, b *batch) (
	count int, message func(number int, room string) (Message, bool), err error,
) {
	rules, err := Load(ctx, n.State, rulesKey, roomRules{})
	if err != nil {
		return 0, nil, err
	}
	words := n.gateway.Pipelines.StageWord
	newDigest := func() *digest {
		return &digest{links: links(n.PublicURL), words: words, projects: map[string]*projectDigest{}}
	}
	all, own := newDigest(), map[string]*digest{} // those of rooms with rules
	if b.Digest {
		all.acknowledged = n.gateway.Alerts.List(ctx).Acknowledged
		for room := range rules {
			own[room] = newDigest()
			own[room].acknowledged = all.acknowledged
		}
	}
	var events []domain.Event
	for e, err := range domain.EventsBetween(ctx, n.gateway.Events.Page, n.outbox.Cursor, b.To) {
		switch {
		case err != nil:
			return 0, nil, err
		case !b.Digest:
			events = append(events, e)
			continue
		}
		all.add(e)
		for room, g := range own {
			if rules.wants(room, e) {
				g.add(e)
			}
		}
	}
	if !b.Digest {
		return len(events), func(number int, room string) (Message, bool) {
			e := events[number]
			return Message{links(n.PublicURL).describe(e, words)}, rules.wants(room, e)
		}, nil
	}
	return 1, func(_ int, room string) (Message, bool) {
		g := cmp.Or(own[room], all)
		return g.message(), g == all || g.events > 0
	}, nil
}

const outboxKey = "bot.outbox"

// outbox is the durable position in the merged stream: what has been posted, and what is being posted.
type outbox struct {
	Cursor int64  `json:"cursor"` // everything up to this event is posted
	Batch  *batch `json:"batch,omitempty"`
}

// batch is a range of events that is being posted. It is stored before the first message and after each, so that
// the next attempt sends the same messages under the same keys.
type batch struct {
	Account string   `json:"account"`
	To      int64    `json:"to"`
	Digest  bool     `json:"digest"`
	Rooms   []string `json:"rooms"`
	Sent    int      `json:"sent"` // messages sent, over all rooms
}

// load reads the outbox, before run. Without one the bot starts at the newest event; a batch of another account starts
// again from its first event. It also stores the outbox: a bot that cannot store its position must not post, or it
// would repeat itself forever.
func (n *notifier) load(ctx context.Context) error {
	var err error
	if n.outbox, err = Load(ctx, n.State, outboxKey, outbox{Cursor: n.gateway.Events.LastID()}); err != nil {
		return err
	}
	if n.database, err = n.Identity(ctx); err != nil {
		return err
	}
	if b := n.outbox.Batch; b != nil && b.Account != n.chat.Account() {
		n.outbox.Batch = nil
	}
	n.unsure = n.outbox.Batch != nil
	return n.save(ctx)
}

func (n *notifier) save(ctx context.Context) error { return Save(ctx, n.State, outboxKey, n.outbox) }

// key returns the key of one message to one room, which is the same at each attempt. Another database has events with
// the same ids: the chat server must not take them for these.
func (n *notifier) key(message int, room string) string {
	return keyOf(room, fmt.Sprintf("events-%s-%d-%d-%d", n.database, n.outbox.Cursor, n.outbox.Batch.To, message))
}

// Up to burstEvents events within burstWindow are posted one by one; more become one digest.
// Events wait until there has been no other for quietTime, to see whether they are a burst.
const (
	burstEvents = 5
	burstWindow = 10 * time.Second
	quietTime   = time.Second
)

// wait returns when it is time to post: with all events that are due, or, if they are too many to be posted one by one,
// with the first of them and true. A digest follows its burst at once, unless the last one is younger than burstWindow.
func (n *notifier) wait(ctx context.Context) ([]domain.Event, bool, error) {
	var first, last time.Time // when new events were noticed
	seen := n.outbox.Cursor
	for {
		changed := n.gateway.Events.Changed()
		now := time.Now()
		if newest := n.gateway.Events.LastID(); newest > seen {
			seen, last = newest, now
			if first.IsZero() {
				first = now
			}
		}
		due := first.Add(burstWindow)
		if quiet := last.Add(quietTime); quiet.Before(due) {
			due = quiet
		}
		var again <-chan time.Time
		switch {
		case first.IsZero():
		case now.Before(due):
			again = time.After(due.Sub(now))
		default:
			page, err := n.gateway.Events.Page(ctx, domain.EventQuery{After: n.outbox.Cursor, Limit: burstEvents + 1})
			if err != nil {
				return nil, false, err
			}
			events := page.Events
			n.posted = slices.DeleteFunc(n.posted, func(at time.Time) bool { return now.Sub(at) >= burstWindow })
			rest := n.digested.Add(burstWindow).Sub(now)
			switch {
			case len(events) == 0:
				first = time.Time{}
			case rest > 0: // more of the burst may follow
				again = time.After(rest)
			case len(events) > burstEvents:
				return events, true, nil
			case len(events)+len(n.posted) <= burstEvents:
				return events, false, nil
			default: // with what has been posted they may yet become a burst
				again = time.After(n.posted[0].Add(burstWindow).Sub(now))
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
