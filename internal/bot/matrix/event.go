package matrix

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"switchyard/internal/bot"
)

type roomEvent struct {
	Type     string          `json:"type"`
	ID       string          `json:"event_id"`
	Sender   string          `json:"sender"`
	StateKey string          `json:"state_key"`
	Content  json.RawMessage `json:"content"`
	Unsigned struct {
		Age         int64           `json:"age"`          // milliseconds
		PrevContent json.RawMessage `json:"prev_content"` // of a state event: the content that it replaced
	} `json:"unsigned"`
}

type roomEvents struct {
	Events []roomEvent `json:"events"`
}

// stateContent holds the fields of state events that the bot uses.
type stateContent struct {
	Name        string `json:"name"`             // of m.room.name
	Replacement string `json:"replacement_room"` // of m.room.tombstone, which closes an upgraded room
	Type        string `json:"type"`             // of m.room.create
	Predecessor struct {
		RoomID string `json:"room_id"`
	} `json:"predecessor"` // of m.room.create
	Membership  string `json:"membership"` // of m.room.member, like the next
	DisplayName string `json:"displayname"`
	Direct      bool   `json:"is_direct"`
}

// readState decodes the content of a state event. A field of the wrong type counts as missing.
func readState(text json.RawMessage) (content stateContent) {
	_ = json.Unmarshal(text, &content)
	return content
}

func (e roomEvent) isMembershipOf(user string) bool {
	return e.Type == "m.room.member" && e.StateKey == user
}

// joins reports whether an event says that the bot joined, rather than that it changed its name.
func (r *receiver) joins(e roomEvent) bool {
	return e.isMembershipOf(r.now().UserID) && readState(e.Content).Membership == "join" &&
		readState(e.Unsigned.PrevContent).Membership != "join"
}

func (r *receiver) handle(ctx context.Context, room string, e roomEvent) error {
	switch e.Type {
	case "m.room.encryption":
		return r.leaveEncrypted(ctx, room)
	case "m.room.name":
		name := bot.Short(readState(e.Content).Name, bot.MaxName)
		return r.changeRoom(ctx, room, func(known *knownRoom) { known.Name = name })
	case "m.room.power_levels":
		return r.setMuted(ctx, room, !mayPost(e.Content, r.now().UserID))
	case "m.room.tombstone":
		_, err := r.follow(ctx, room, readState(e.Content).Replacement, e.Sender)
		return err
	case "m.room.member":
		if e.isMembershipOf(r.now().UserID) {
			return r.change(ctx, func(s *savedSession) { s.rename(readState(e.Content).DisplayName) })
		}
	case "m.room.message", "m.reaction":
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
	_, err := r.post(ctx, room, outgoing{key: key, kind: "m.notice", message: answer, replyTo: e.ID, thread: thread})
	if errors.Is(err, bot.ErrRefused) {
		r.log.WarnContext(ctx, "bot: reply refused", "room", room, "error", err)
		return nil
	}
	return err
}

// mayPost reports whether a room's power levels, which old rooms also write as strings, allow a user to post messages.
func mayPost(content json.RawMessage, user string) bool {
	var levels struct {
		Users         map[string]json.Number `json:"users"`
		UsersDefault  json.Number            `json:"users_default"`
		Events        map[string]json.Number `json:"events"`
		EventsDefault json.Number            `json:"events_default"`
	}
	if json.Unmarshal(content, &levels) != nil {
		return true // if not, the homeserver will refuse the message
	}
	has, ok := levels.Users[user]
	if !ok {
		has = levels.UsersDefault
	}
	needs, ok := levels.Events["m.room.message"]
	if !ok {
		needs = levels.EventsDefault
	}
	hasLevel, _ := has.Float64() // 0 if there is none
	needsLevel, _ := needs.Float64()
	return hasLevel >= needsLevel
}
