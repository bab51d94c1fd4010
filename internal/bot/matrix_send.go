package bot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Send posts a message that is to be noticed.
func (m *matrix) Send(ctx context.Context, room, key string, message Message) error {
	return m.post(ctx, room, key, "m.text", message)
}

// post sends a message event. The key is the transaction id: the homeserver takes each once from this device.
func (m *matrix) post(ctx context.Context, room, key, kind string, message Message) error {
	content := map[string]any{
		"msgtype":        kind,
		"body":           message.PlainText(),
		"format":         "org.matrix.custom.html",
		"formatted_body": message.HTML(),
		"m.mentions":     struct{}{}, // nobody is called by what happens to stand in a text
	}
	err := m.call(ctx, matrixCall{
		method: http.MethodPut, path: "/v3/rooms/" + url.PathEscape(room) + "/send/m.room.message/" + url.PathEscape(key), body: content,
	})
	var refused *matrixError
	if errors.As(err, &refused) && refused.ofRoom() && refused.status >= 400 && refused.status < 500 {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return explainMatrix(err)
}
