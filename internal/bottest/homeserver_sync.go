package bottest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

func (h *Homeserver) sync(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if filter := query.Get("filter"); !json.Valid([]byte(filter)) {
		h.t.Errorf("filter %q", filter)
	}
	timeout, err := strconv.Atoi(query.Get("timeout"))
	if err != nil {
		h.t.Errorf("timeout %q", query.Get("timeout"))
	}
	since := 0
	if text := query.Get("since"); text != "" {
		if since, err = strconv.Atoi(strings.TrimPrefix(text, "s")); err != nil {
			refuse(w, 400, "M_UNKNOWN")
			return
		}
	}
	h.mu.Lock()
	forgets := h.Forgets && since > 0
	if forgets {
		h.Forgets = false
	}
	h.mu.Unlock()
	if forgets {
		refuse(w, 400, "M_UNKNOWN")
		return
	}
	deadline := time.After(time.Duration(timeout) * time.Millisecond)
	for {
		h.mu.Lock()
		changed, news := h.changed, len(h.updates) > since
		if news || timeout == 0 {
			reply(w, h.since(since))
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		select {
		case <-changed:
		case <-deadline:
			timeout = 0
		case <-r.Context().Done():
			return
		}
	}
}

// since returns the response to a sync: the current membership of each room, and the events of the joined ones.
func (h *Homeserver) since(since int) map[string]any {
	join, invite, leave := map[string]any{}, map[string]any{}, map[string]any{}
	for _, u := range h.updates[since:] {
		if u.membership != "" || h.room(u.room).members[BotUser] {
			delete(invite, u.room)
		}
		switch {
		case u.membership == "leave":
			delete(join, u.room)
			leave[u.room] = map[string]any{}
		case u.membership == "invite" && !h.room(u.room).members[BotUser]:
			invite[u.room] = map[string]any{"invite_state": map[string]any{"events": []any{
				map[string]any{"type": "m.room.create", "state_key": "", "content": h.room(u.room).state["m.room.create"]}, u.event,
			}}}
		case u.membership == "" && h.room(u.room).members[BotUser]:
			delete(leave, u.room)
			events := []any{}
			if known, ok := join[u.room].(map[string]any); ok {
				events = known["timeline"].(map[string]any)["events"].([]any)
			}
			join[u.room] = map[string]any{
				"summary":  map[string]any{"m.joined_member_count": len(h.room(u.room).members)},
				"timeline": map[string]any{"events": append(events, u.event)},
			}
		}
	}
	return map[string]any{
		"next_batch": fmt.Sprintf("s%d", len(h.updates)),
		"rooms":      map[string]any{"join": join, "invite": invite, "leave": leave},
	}
}
