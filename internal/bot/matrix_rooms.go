package bot

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
)

func (m *matrix) isMember(room string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.session.Rooms[room]
	return ok
}

func (m *matrix) forget(ctx context.Context, room string) error {
	if !m.isMember(room) {
		return nil
	}
	return m.change(ctx, func(s *matrixSession) { delete(s.Rooms, room) })
}

// reconcile compares the rooms that are known with those that the homeserver knows.
func (m *matrix) reconcile(ctx context.Context) error {
	var joined struct {
		Rooms []string `json:"joined_rooms"`
	}
	if err := m.call(ctx, matrixCall{method: http.MethodGet, path: "/v3/joined_rooms", answer: &joined}); err != nil {
		return explainMatrix(err)
	}
	var profile struct {
		DisplayName string `json:"displayname"`
	}
	m.mu.Lock()
	user := m.session.UserID
	m.mu.Unlock()
	// Without a display name people call the bot by its id.
	_ = m.call(ctx, matrixCall{method: http.MethodGet, path: "/v3/profile/" + url.PathEscape(user) + "/displayname", answer: &profile})
	err := m.change(ctx, func(s *matrixSession) {
		s.DisplayName = profile.DisplayName
		for room := range s.Rooms {
			if !slices.Contains(joined.Rooms, room) {
				delete(s.Rooms, room)
			}
		}
	})
	if err != nil {
		return err
	}
	for _, room := range joined.Rooms {
		if m.isMember(room) {
			continue
		}
		if err := m.enter(ctx, room); err != nil {
			return err
		}
	}
	return nil
}

// enter takes a joined room into the bot's rooms, or leaves it when it is encrypted.
func (m *matrix) enter(ctx context.Context, room string) error {
	state := func(kind string, answer any) error {
		return m.call(ctx, matrixCall{method: http.MethodGet, path: "/v3/rooms/" + url.PathEscape(room) + "/state/" + kind, answer: answer})
	}
	switch err := state("m.room.encryption", nil); {
	case err == nil:
		return m.leaveEncrypted(ctx, room)
	case !isMissing(err):
		return explainMatrix(err)
	}
	var name struct {
		Name string `json:"name"`
	}
	if err := state("m.room.name", &name); err != nil && !isMissing(err) {
		return explainMatrix(err)
	}
	return m.change(ctx, func(s *matrixSession) { s.Rooms[room] = matrixRoom{Name: short(name.Name, maxName)} })
}

// leaveEncrypted says why and leaves: the bot cannot read what is encrypted, and must not post in clear among it.
func (m *matrix) leaveEncrypted(ctx context.Context, room string) error {
	m.log.InfoContext(ctx, "bot: left an encrypted room", "room", room)
	m.remark("It left the last room because that is encrypted; invite it to one without encryption.")
	notice := Message{{Plain("This room is encrypted, which I do not understand, so I leave. Please invite me to a room without encryption.")}}
	err := m.post(ctx, room, "encrypted-"+rand.Text(), "m.notice", notice)
	if err != nil && !errors.Is(err, errRefused) {
		return err
	}
	return m.leave(ctx, room)
}

func (m *matrix) leave(ctx context.Context, room string) error {
	err := m.call(ctx, matrixCall{method: http.MethodPost, path: "/v3/rooms/" + url.PathEscape(room) + "/leave", body: struct{}{}})
	var refused *matrixError
	if err != nil && (!errors.As(err, &refused) || !refused.ofRoom() || refused.status >= http.StatusInternalServerError) {
		return explainMatrix(err)
	}
	return m.forget(ctx, room) // refused: it has been left already
}
