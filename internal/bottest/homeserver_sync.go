package bottest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

func (h *Homeserver) sync(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	var filter struct {
		Room struct{ Timeline struct{ Limit int } }
	}
	if json.Unmarshal([]byte(query.Get("filter")), &filter) != nil || filter.Room.Timeline.Limit == 0 {
		h.t.Errorf("filter %q", query.Get("filter"))
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
			reply(w, h.since(since, filter.Room.Timeline.Limit))
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
