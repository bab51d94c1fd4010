package bot

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"switchyard/internal/domain"
)

// outboxKey is the key of the outbox in State.
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
	stored, err := n.State.State(ctx, outboxKey)
	if err != nil {
		return err
	}
	if n.database, err = n.Identity(ctx); err != nil {
		return err
	}
	if stored == "" {
		n.outbox = outbox{Cursor: n.gateway.Events.LastID()}
		return n.save(ctx)
	}
	if err := json.Unmarshal([]byte(stored), &n.outbox); err != nil {
		return domain.WrapError(domain.Internal, err, "the bot's position in the stream cannot be read from the store")
	}
	if b := n.outbox.Batch; b != nil && b.Account != n.chat.Account() {
		n.outbox.Batch = nil
	}
	n.unsure = n.outbox.Batch != nil
	return n.save(ctx)
}

// save stores the outbox, even while the bot is stopping: posted messages must not be forgotten.
func (n *notifier) save(ctx context.Context) error {
	text, err := json.Marshal(n.outbox)
	if err != nil {
		return err
	}
	return n.State.SetState(context.WithoutCancel(ctx), outboxKey, string(text))
}

// key returns the key of one message to one room, which is the same at each attempt. Another database has events with
// the same ids: the chat server must not take them for these.
func (n *notifier) key(message int, room string) string {
	sum := sha256.Sum256([]byte(room))
	return fmt.Sprintf("events-%s-%d-%d-%d-%x", n.database, n.outbox.Cursor, n.outbox.Batch.To, message, sum[:6])
}
