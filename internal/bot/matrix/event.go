package matrix

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"switchyard/internal/bot"
	"switchyard/internal/clock"
)

type roomEvent struct {
	Type     string          `json:"type"`
	ID       string          `json:"event_id"`
	Sender   string          `json:"sender"`
	StateKey *string         `json:"state_key"`
	Content  json.RawMessage `json:"content"`
	Unsigned struct {
		Age         int64           `json:"age"`          // milliseconds
		PrevContent json.RawMessage `json:"prev_content"` // of a state event: the content that it replaced
	} `json:"unsigned"`
}

type roomEvents struct {
	Events []roomEvent `json:"events"`
}

// memberContent is the content of m.room.member.
type memberContent struct {
	Membership  string `json:"membership"`
	DisplayName string `json:"displayname"`
}

// ownMember decodes an event about the bot's own membership; false for any other event.
func (r *receiver) ownMember(e roomEvent) (now, before memberContent, ok bool) {
	isOwn := e.Type == "m.room.member" && e.StateKey != nil && *e.StateKey == r.now().UserID
	if !isOwn || json.Unmarshal(e.Content, &now) != nil {
		return now, before, false
	}
	_ = json.Unmarshal(e.Unsigned.PrevContent, &before) // there may be none
	return now, before, true
}

// joins reports whether an event says that the bot joined, rather than that it changed its name.
func (r *receiver) joins(e roomEvent) bool {
	now, before, ok := r.ownMember(e)
	return ok && now.Membership == "join" && before.Membership != "join"
}

// handle handles one event of a joined room.
func (r *receiver) handle(ctx context.Context, room string, e roomEvent) error {
	switch e.Type {
	case "m.room.encryption":
		return r.leaveEncrypted(ctx, room)
	case "m.room.name":
		var content nameContent
		if json.Unmarshal(e.Content, &content) != nil {
			return nil
		}
		return r.changeRoom(ctx, room, func(known *knownRoom) { known.Name = bot.Short(content.Name, bot.MaxName) })
	case "m.room.power_levels":
		muted := int64(0)
		if !mayPost(e.Content, r.now().UserID) {
			muted = clock.Now().UnixMilli()
		}
		return r.setMuted(ctx, room, muted)
	case "m.room.tombstone":
		var content tombstoneContent
		if json.Unmarshal(e.Content, &content) != nil {
			return nil
		}
		_, err := r.follow(ctx, room, content.Replacement, e.Sender)
		return err
	case "m.room.member":
		if now, _, ok := r.ownMember(e); ok && now.DisplayName != "" {
			return r.change(ctx, func(s *savedSession) { s.rename(now.DisplayName) })
		}
	case "m.room.message":
		if !r.first {
			return r.reply(ctx, room, e)
		}
	}
	return nil
}

// reply answers a message, unless an earlier attempt has.
func (r *receiver) reply(ctx context.Context, room string, e roomEvent) error {
	question, thread, ok := r.question(room, e)
	if !ok {
		return nil
	}
	sum := sha256.Sum256([]byte(e.ID))
	key := fmt.Sprintf("reply-%x", sum[:12])
	if r.again {
		if r.posted[room] == nil {
			keys, err := r.postedKeys(ctx, room)
			if err != nil {
				return err
			}
			r.posted[room] = keys
		}
		if r.posted[room][key] {
			return nil
		}
	}
	answer, ok := r.answer(ctx, question)
	if !ok {
		return nil
	}
	err := r.post(ctx, room, outgoing{key: key, kind: "m.notice", message: answer, replyTo: e.ID, thread: thread})
	if errors.Is(err, bot.ErrRefused) {
		r.log.WarnContext(ctx, "bot: reply refused", "room", room, "error", err)
		return nil
	}
	return err
}
