package bot

import (
	"context"
	"encoding/json"
	"slices"
)

// matrixSession is the state kept across restarts. Transaction ids belong to a device, so the device stays the same.
type matrixSession struct {
	UserID      string                `json:"user_id"`
	DeviceID    string                `json:"device_id"`
	Names       []string              `json:"names,omitempty"` // display names, latest first
	Token       string                `json:"access_token"`
	PasswordMAC string                `json:"password_mac"` // shows whether the password has changed and must be checked
	NextBatch   string                `json:"next_batch"`
	Rooms       map[string]matrixRoom `json:"rooms"`
	Moved       map[string]string     `json:"moved,omitempty"`       // upgraded room → the room that replaced it
	Invitations map[string]invitation `json:"invitations,omitempty"` // room → its unanswered invitation
}

type matrixRoom struct {
	Name         string `json:"name"`
	Direct       bool   `json:"direct,omitempty"`         // invited to as a direct chat
	Members      int    `json:"members,omitempty"`        // 0 while unknown
	MutedSinceMS int64  `json:"muted_since_ms,omitempty"` // since when the bot may not post; 0 if it may
	Successor    string `json:"successor,omitempty"`      // the room that replaces this one, until the bot is in it
}

// maxNames is how many of the bot's display names are remembered: people use an old one for a while after a
// change.
const maxNames = 5

// rename records the bot's display name.
func (s *matrixSession) rename(name string) {
	if name = short(name, maxName); name == "" || len(s.Names) > 0 && s.Names[0] == name {
		return
	}
	others := slices.DeleteFunc(slices.Clone(s.Names), func(n string) bool { return n == name })
	s.Names = append([]string{name}, others...)
	s.Names = s.Names[:min(len(s.Names), maxNames)]
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

// change applies f to the session and stores it, even while the bot is stopping.
func (m *matrix) change(ctx context.Context, f func(*matrixSession)) error {
	m.saving.Lock()
	defer m.saving.Unlock()
	m.mu.Lock()
	f(&m.session)
	text, err := json.Marshal(m.session)
	m.mu.Unlock()
	if err != nil || string(text) == m.stored {
		return err
	}
	if err := m.state.SetState(context.WithoutCancel(ctx), m.Account(), string(text)); err != nil {
		return err
	}
	m.stored = string(text)
	return nil
}

// changeRoom applies f to one of the bot's rooms and stores the session; it does nothing for any other room.
func (m *matrix) changeRoom(ctx context.Context, id string, f func(*matrixRoom)) error {
	before, ok := m.room(id)
	after := before
	if f(&after); !ok || after == before {
		return nil
	}
	return m.change(ctx, func(s *matrixSession) {
		if room, ok := s.Rooms[id]; ok {
			f(&room)
			s.Rooms[id] = room
		}
	})
}

// room returns what is known about one of the bot's rooms; false if the bot is not a member.
func (m *matrix) room(id string) (matrixRoom, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	room, ok := m.session.Rooms[id]
	return room, ok
}

func (m *matrix) isMember(id string) bool {
	_, ok := m.room(id)
	return ok
}

func (m *matrix) userID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.session.UserID
}
