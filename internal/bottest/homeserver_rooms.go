package bottest

import (
	"encoding/json"
	"errors"
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
	r.tell(update{room: id, event: event})
	return event["event_id"].(string)
}

func (r *rooms) nextEvent() string { return fmt.Sprintf("$e%d", len(r.updates)) }

// since returns the response to a sync: the current membership of each room, and the newest events of the joined ones,
// at most limit of each.
func (r *rooms) since(since, limit int) map[string]any {
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
			timeline := map[string]any{"events": []any{}}
			if known, ok := join[u.room].(map[string]any); ok {
				timeline = known["timeline"].(map[string]any)
			}
			events := append(timeline["events"].([]any), u.event)
			if len(events) > limit {
				events, timeline["limited"] = events[1:], true
			}
			if len(events) == limit {
				first, _ := events[0].(map[string]any)["event_id"].(string)
				timeline["prev_batch"] = "s" + strings.TrimPrefix(first, "$e")
			}
			timeline["events"] = events
			join[u.room] = map[string]any{
				"summary":  map[string]any{"m.joined_member_count": len(r.room(u.room).members)},
				"timeline": timeline,
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

// page returns a page of a room's events, newest first, from one position of syncs back to another.
func (r *rooms) page(t testing.TB, w http.ResponseWriter, id string, query url.Values) {
	limit, err := strconv.Atoi(query.Get("limit"))
	var filter struct{ Types, Senders []string }
	if err != nil || query.Get("dir") != "b" || json.Unmarshal([]byte(query.Get("filter")), &filter) != nil {
		t.Errorf("messages %v", query)
	}
	position := func(name string, missing int) int {
		text := query.Get(name)
		if text == "" {
			return missing
		}
		at, wrong := strconv.Atoi(strings.TrimPrefix(text, "s"))
		err = errors.Join(err, wrong)
		return at
	}
	at, to := position("from", len(r.updates)), position("to", 0)
	if err != nil {
		refuse(w, http.StatusBadRequest, "M_INVALID_PARAM")
		return
	}
	chunk, answer := []any{}, map[string]any{"start": query.Get("from")}
	for ; at > to && len(chunk) < limit; at-- {
		u := r.updates[at-1]
		kind, _ := u.event["type"].(string)
		sender, _ := u.event["sender"].(string)
		if u.room == id && u.membership == "" && slices.Contains(filter.Types, kind) &&
			(filter.Senders == nil || slices.Contains(filter.Senders, sender)) {
			chunk = append(chunk, u.event)
		}
	}
	if at > to {
		answer["end"] = fmt.Sprintf("s%d", at)
	}
	answer["chunk"] = chunk
	reply(w, answer)
}
