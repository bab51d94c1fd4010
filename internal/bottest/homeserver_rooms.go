package bottest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms are the rooms of a homeserver and what has happened in them.
type rooms struct {
	byID    map[string]*room
	updates []update
	changed chan struct{} // closed at the next update
}

type room struct {
	name      string
	encrypted bool
	muted     bool // the bot must not post
	members   map[string]bool
	state     map[string]map[string]any // type of a state event → its content
	messages  []map[string]any          // events of the type m.room.message, oldest first
}

// update is part of a sync: an event in a joined room, or a change of the bot's membership.
type update struct {
	room, membership string
	event            map[string]any
}

func (r *rooms) room(id string) *room {
	if r.byID[id] == nil {
		r.byID[id] = &room{members: map[string]bool{}, state: map[string]map[string]any{}}
	}
	return r.byID[id]
}

func (r *rooms) tell(u update) {
	r.updates = append(r.updates, u)
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *rooms) create(id, name, user string, content map[string]any) *room {
	room := r.room(id)
	room.name = name
	room.members[user] = true
	room.state["m.room.create"] = content
	return room
}

// setState is append for state events.
func (r *rooms) setState(id, user, kind string, content map[string]any) {
	r.room(id).state[kind] = content
	r.append(id, user, kind, content)
}

func (r *rooms) append(id, user, kind string, content map[string]any) string {
	event := map[string]any{
		"type": kind, "event_id": r.nextEvent(), "sender": user, "content": content, "unsigned": map[string]any{"age": 1},
	}
	if kind == "m.room.message" {
		r.room(id).messages = append(r.room(id).messages, event)
	}
	r.tell(update{room: id, event: event})
	return event["event_id"].(string)
}

func (r *rooms) nextEvent() string { return fmt.Sprintf("$e%d", len(r.updates)) }

// since returns the response to a sync: the current membership of each room, and the events of the joined ones.
func (r *rooms) since(since int) map[string]any {
	join, invite, leave := map[string]any{}, map[string]any{}, map[string]any{}
	for _, u := range r.updates[since:] {
		if u.membership != "" || r.room(u.room).members[BotUser] {
			delete(invite, u.room)
		}
		switch {
		case u.membership == "leave":
			delete(join, u.room)
			leave[u.room] = map[string]any{}
		case u.membership == "invite" && !r.room(u.room).members[BotUser]:
			invite[u.room] = map[string]any{"invite_state": map[string]any{"events": []any{
				map[string]any{"type": "m.room.create", "state_key": "", "content": r.room(u.room).state["m.room.create"]}, u.event,
			}}}
		case u.membership == "" && r.room(u.room).members[BotUser]:
			delete(leave, u.room)
			events := []any{}
			if known, ok := join[u.room].(map[string]any); ok {
				events = known["timeline"].(map[string]any)["events"].([]any)
			}
			join[u.room] = map[string]any{
				"summary":  map[string]any{"m.joined_member_count": len(r.room(u.room).members)},
				"timeline": map[string]any{"events": append(events, u.event)},
			}
		}
	}
	return map[string]any{
		"next_batch": fmt.Sprintf("s%d", len(r.updates)),
		"rooms":      map[string]any{"join": join, "invite": invite, "leave": leave},
	}
}

func (r *rooms) joined() []string {
	joined := []string{}
	for id, room := range r.byID {
		if room.members[BotUser] {
			joined = append(joined, id)
		}
	}
	return joined
}

// messages returns a page of a room's messages, newest first.
func (r *room) page(t testing.TB, w http.ResponseWriter, query url.Values) {
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || query.Get("dir") != "b" {
		t.Errorf("messages %v", query)
	}
	end := len(r.messages)
	if from := query.Get("from"); from != "" {
		if end, err = strconv.Atoi(strings.TrimPrefix(from, "t")); err != nil {
			refuse(w, 400, "M_INVALID_PARAM")
			return
		}
	}
	first := max(0, end-limit)
	chunk := slices.Clone(r.messages[first:end])
	slices.Reverse(chunk)
	answer := map[string]any{"chunk": chunk, "start": fmt.Sprintf("t%d", end)}
	if first > 0 {
		answer["end"] = fmt.Sprintf("t%d", first)
	}
	reply(w, answer)
}
