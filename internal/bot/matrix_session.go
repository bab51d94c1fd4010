package bot

import (
	"context"
	"encoding/json"
)

// matrixSession is what is kept over restarts. Transaction ids are told apart by device: with the same device
// nothing is posted twice.
type matrixSession struct {
	UserID      string                `json:"user_id"`
	DeviceID    string                `json:"device_id"`
	DisplayName string                `json:"display_name"`
	Token       string                `json:"access_token"`
	PasswordMAC string                `json:"password_mac"` // tells a changed password, which must prove itself
	NextBatch   string                `json:"next_batch"`
	Rooms       map[string]matrixRoom `json:"rooms"`
	Invited     map[string]string     `json:"invited,omitempty"` // rooms to be answered about → who invites
}

type matrixRoom struct {
	Name string `json:"name"`
}

func (m *matrix) load(ctx context.Context) (matrixSession, error) {
	session := matrixSession{}
	stored, err := m.state.State(ctx, m.Account())
	if err == nil && stored != "" {
		err = json.Unmarshal([]byte(stored), &session)
	}
	if session.Rooms == nil {
		session.Rooms = map[string]matrixRoom{}
	}
	return session, err
}

// change applies f to the session and stores it, even as the bot ends.
func (m *matrix) change(ctx context.Context, f func(*matrixSession)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.session)
	text, err := json.Marshal(m.session)
	if err != nil || string(text) == m.stored {
		return err
	}
	if err := m.state.SetState(context.WithoutCancel(ctx), m.Account(), string(text)); err != nil {
		return err
	}
	m.stored = string(text)
	return nil
}
