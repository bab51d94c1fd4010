package bot

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"switchyard/internal/supervise"
)

const (
	// requestEnds is how long a homeserver may still work on a request whose client process was killed.
	requestEnds = 2 * time.Second
	// At most historyPages pages of a room's messages are searched, each of historyPage messages.
	historyPages = 5
	historyPage  = 100
)

// Posted reports whether the message with this key is among a room's newest. Not every homeserver remembers the
// transaction id of an aborted request.
func (m *matrix) Posted(ctx context.Context, room, key string) (bool, error) {
	keys, err := m.postedKeys(ctx, m.successor(room))
	return keys[key], err
}

// postedKeys returns the keys of the bot's newest messages in a room; none if it may not read them. It first waits until
// requests of an earlier process have ended.
func (m *matrix) postedKeys(ctx context.Context, room string) (map[string]bool, error) {
	m.mu.Lock()
	user, connected := m.session.UserID, m.connected
	m.mu.Unlock()
	if !supervise.Sleep(ctx, time.Until(connected.Add(requestEnds))) {
		return nil, ctx.Err()
	}
	keys := map[string]bool{}
	query := url.Values{"dir": {"b"}, "limit": {strconv.Itoa(historyPage)}, "filter": {historyFilter(user)}}
	for range historyPages {
		var page struct {
			Chunk []struct {
				Sender  string          `json:"sender"`
				Content json.RawMessage `json:"content"` // may come from anybody, so it may be anything
			} `json:"chunk"`
			End string `json:"end"`
		}
		err := m.call(ctx, matrixCall{method: http.MethodGet, path: roomPath(room, "messages"), query: query, answer: &page})
		var refused *matrixError
		if errors.As(err, &refused) && refused.ofRoom() && refused.status < http.StatusInternalServerError {
			return keys, nil
		}
		if err != nil {
			return nil, explainMatrix(err)
		}
		for _, e := range page.Chunk {
			var content struct {
				Key string `json:"switchyard.key"`
			}
			if e.Sender == user && json.Unmarshal(e.Content, &content) == nil && content.Key != "" {
				keys[content.Key] = true
			}
		}
		if page.End == "" || len(page.Chunk) == 0 {
			break
		}
		query.Set("from", page.End)
	}
	return keys, nil
}

// historyFilter asks for a user's messages only. A homeserver may ignore it.
func historyFilter(user string) string {
	filter, _ := json.Marshal(map[string]any{"types": []string{"m.room.message"}, "senders": []string{user}}) // strings always encode
	return string(filter)
}
