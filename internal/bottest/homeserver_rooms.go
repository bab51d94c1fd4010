package bottest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

func (h *Homeserver) inRoom(
	w http.ResponseWriter, r *http.Request, parts []string, device string, body map[string]any,
) {
	h.mu.Lock()
	defer h.mu.Unlock()
	method := r.Method
	id, _ := url.PathUnescape(parts[0])
	room := h.room(id)
	rest := strings.Join(parts[1:], "/")
	switch {
	case method == http.MethodPost && rest == "join":
		invited := false
		for _, u := range h.updates {
			if u.room == id && (u.membership != "" || u.event["type"] == "m.room.member") {
				invited = u.membership == "invite"
			}
		}
		if !invited {
			refuse(w, 403, "M_FORBIDDEN")
			return
		}
		room.members[BotUser] = true
		h.tell(update{room: id, event: map[string]any{
			"type": "m.room.member", "event_id": h.nextEvent(), "sender": BotUser, "state_key": BotUser,
			"content": map[string]any{"membership": "join", "displayname": h.name},
		}})
		reply(w, map[string]any{"room_id": id})
	case method == http.MethodPost && rest == "leave":
		delete(room.members, BotUser)
		h.tell(update{room: id, membership: "leave"})
		reply(w, map[string]any{})
	case !room.members[BotUser]:
		refuse(w, 403, "M_FORBIDDEN")
	case method == http.MethodGet && rest == "state/m.room.encryption" && room.encrypted:
		reply(w, map[string]any{"algorithm": "m.megolm.v1.aes-sha2"})
	case method == http.MethodGet && rest == "state/m.room.name" && room.name != "":
		reply(w, map[string]any{"name": room.name})
	case method == http.MethodGet && strings.HasPrefix(rest, "state/"):
		content, ok := room.state[strings.TrimPrefix(rest, "state/")]
		if !ok {
			refuse(w, 404, "M_NOT_FOUND")
			return
		}
		reply(w, content)
	case method == http.MethodGet && rest == "messages":
		h.messages(w, r.URL.Query(), room)
	case method == http.MethodPut && len(parts) == 4 && strings.HasPrefix(rest, "send/m.room.message/") && parts[3] != "":
		key := device + " " + id + " " + parts[3]
		event := h.sent[key]
		switch {
		case event == "" && room.muted:
			refuse(w, 403, "M_FORBIDDEN")
			return
		case event == "":
			event = h.append(id, BotUser, parts[2], body)
		}
		if !h.Forgetful {
			h.sent[key] = event
		}
		reply(w, map[string]any{"event_id": event})
	default:
		h.t.Errorf("%s %s is not in the specification", method, rest)
		refuse(w, 404, "M_UNRECOGNIZED")
	}
}

// messages returns a page of a room's messages, newest first.
func (h *Homeserver) messages(w http.ResponseWriter, query url.Values, room *room) {
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || query.Get("dir") != "b" {
		h.t.Errorf("messages %v", query)
	}
	end := len(room.messages)
	if from := query.Get("from"); from != "" {
		if end, err = strconv.Atoi(strings.TrimPrefix(from, "t")); err != nil {
			refuse(w, 400, "M_INVALID_PARAM")
			return
		}
	}
	first := max(0, end-limit)
	chunk := slices.Clone(room.messages[first:end])
	slices.Reverse(chunk)
	answer := map[string]any{"chunk": chunk, "start": fmt.Sprintf("t%d", end)}
	if first > 0 {
		answer["end"] = fmt.Sprintf("t%d", first)
	}
	reply(w, answer)
}
