package bot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"switchyard/internal/clock"
)

// matrixPost is a message that the bot posts.
type matrixPost struct {
	key     string // transaction id; also kept in the event's content
	kind    string // "m.text", or "m.notice" for what no other bot should answer
	message Message
	replyTo string // event id of the question in thread
	thread  string // event id of the thread's first message, "" outside threads
}

// contentKey is the field of an event's content that holds the message's key.
const contentKey = "switchyard.key"

func (p matrixPost) content() map[string]any {
	content := map[string]any{
		"msgtype":        p.kind,
		"body":           p.message.PlainText(),
		"format":         "org.matrix.custom.html",
		"formatted_body": p.message.HTML(),
		"m.mentions":     struct{}{}, // names in a text must not notify anybody
		contentKey:       p.key,
	}
	if p.thread != "" {
		content["m.relates_to"] = map[string]any{
			"rel_type": "m.thread", "event_id": p.thread,
			"is_falling_back": true, "m.in_reply_to": map[string]any{"event_id": p.replyTo},
		}
	}
	return content
}

// Send posts a message for which clients show a notification.
func (m *matrix) Send(ctx context.Context, room, key string, message Message) error {
	return m.post(ctx, m.successor(room), matrixPost{key: key, kind: "m.text", message: message})
}

// post sends a message event, to the room that replaces this one if it has been upgraded. It returns errRefused when the
// bot may not post there.
func (m *matrix) post(ctx context.Context, room string, p matrixPost) error {
	err := m.call(ctx, matrixCall{
		method: http.MethodPut, path: roomPath(room, "send/m.room.message/"+url.PathEscape(p.key)), body: p.content(),
	})
	var refused *matrixError
	switch {
	case err == nil:
		return m.setMuted(ctx, room, 0)
	case !errors.As(err, &refused) || !refused.ofRoom() || refused.status < 400 || refused.status >= 500:
		return explainMatrix(err)
	}
	if followed, err := m.followTombstone(ctx, room); err != nil {
		return err
	} else if followed {
		return m.post(ctx, m.successor(room), p)
	}
	if refused.code == "M_FORBIDDEN" {
		if err := m.setMuted(ctx, room, clock.Now().UnixMilli()); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %w", errRefused, err)
}

// setMuted records since when the bot may not post in a room, 0 if it may. An earlier time is kept.
func (m *matrix) setMuted(ctx context.Context, room string, sinceMS int64) error {
	return m.changeRoom(ctx, room, func(r *matrixRoom) {
		if sinceMS == 0 || r.MutedSinceMS == 0 {
			r.MutedSinceMS = sinceMS
		}
	})
}

// roomPath returns the path of a room's resource, which must already be escaped.
func roomPath(room, resource string) string {
	return "/v3/rooms/" + url.PathEscape(room) + "/" + resource
}
