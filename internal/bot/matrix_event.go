package bot

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
)

type matrixEvent struct {
	Type     string          `json:"type"`
	ID       string          `json:"event_id"`
	Sender   string          `json:"sender"`
	StateKey *string         `json:"state_key"`
	Content  json.RawMessage `json:"content"`
	Unsigned struct {
		Age int64 `json:"age"` // milliseconds
	} `json:"unsigned"`
}

type matrixEvents struct {
	Events []matrixEvent `json:"events"`
}

// joins reports whether an event is the bot joining.
func (m *matrix) joins(e matrixEvent) bool {
	var content struct {
		Membership string `json:"membership"`
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return e.Type == "m.room.member" && e.StateKey != nil && *e.StateKey == m.session.UserID &&
		json.Unmarshal(e.Content, &content) == nil && content.Membership == "join"
}

// handle does what one event of a joined room asks for.
func (m *matrix) handle(ctx context.Context, room string, e matrixEvent, first bool, answer Answer) error {
	switch e.Type {
	case "m.room.encryption":
		return m.leaveEncrypted(ctx, room)
	case "m.room.name":
		var content struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(e.Content, &content) != nil {
			return nil
		}
		return m.change(ctx, func(s *matrixSession) { s.Rooms[room] = matrixRoom{Name: short(content.Name, maxName)} })
	case "m.room.message":
		q, ok := m.question(e)
		if !ok || first {
			return nil
		}
		reply, ok := answer(ctx, q)
		if !ok {
			return nil
		}
		sum := sha256.Sum256([]byte(e.ID))
		err := m.post(ctx, room, fmt.Sprintf("reply-%x", sum[:12]), "m.notice", reply)
		if errors.Is(err, errRefused) {
			m.log.WarnContext(ctx, "bot: reply refused", "room", room, "error", err)
			return nil
		}
		return err
	}
	return nil
}
