package bot

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
)

func (m *matrix) forget(ctx context.Context, room string) error {
	if !m.isMember(room) {
		return nil
	}
	return m.change(ctx, func(s *matrixSession) { delete(s.Rooms, room) })
}

// reconcile updates the known rooms to those that the homeserver reports.
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
	// Without a display name people address the bot by its id.
	_ = m.call(ctx, matrixCall{method: http.MethodGet, path: "/v3/profile/" + url.PathEscape(m.userID()) + "/displayname", answer: &profile})
	err := m.change(ctx, func(s *matrixSession) {
		s.rename(profile.DisplayName)
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
		known, ok := m.room(room)
		switch {
		case !ok:
			err = m.enter(ctx, room, false)
		case known.Successor != "":
			_, err = m.follow(ctx, room, known.Successor, "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enter adds a joined room to the bot's rooms, or leaves it if it is encrypted or a space.
func (m *matrix) enter(ctx context.Context, room string, direct bool) error {
	switch err := m.roomState(ctx, room, "m.room.encryption", nil); {
	case err == nil:
		return m.leaveEncrypted(ctx, room)
	case !isMissing(err):
		return explainMatrix(err)
	}
	var create createContent
	if err := m.roomState(ctx, room, "m.room.create", &create); err != nil && !isMissing(err) {
		return explainMatrix(err)
	}
	if create.Type == spaceType {
		m.remark(spaceNote)
		return m.leave(ctx, room)
	}
	var name nameContent
	if err := m.roomState(ctx, room, "m.room.name", &name); err != nil && !isMissing(err) {
		return explainMatrix(err)
	}
	return m.change(ctx, func(s *matrixSession) {
		s.Rooms[room] = matrixRoom{Name: short(name.Name, maxName), Direct: direct}
	})
}

// The fields of state events that the bot uses.
type (
	createContent struct {
		Type        string `json:"type"`
		Predecessor struct {
			RoomID string `json:"room_id"`
		} `json:"predecessor"`
	}
	nameContent struct {
		Name string `json:"name"`
	}
)

// A space is a room that lists rooms: nobody reads messages there.
const (
	spaceType = "m.space"
	spaceNote = "The last invitation was to a space; invite the bot to a room."
)

// roomState reads the content of a room's state event.
func (m *matrix) roomState(ctx context.Context, room, kind string, content any) error {
	return m.call(ctx, matrixCall{method: http.MethodGet, path: roomPath(room, "state/"+kind), answer: content})
}

// leaveEncrypted says why and leaves: the bot cannot read encrypted messages, and must not post unencrypted ones there.
func (m *matrix) leaveEncrypted(ctx context.Context, room string) error {
	m.log.InfoContext(ctx, "bot: left an encrypted room", "room", room)
	m.remark("It left the last room because it is encrypted; invite it to one without encryption.")
	notice := Message{{Plain("This room is encrypted, which I do not support, so I am leaving. Please invite me to a room without encryption.")}}
	err := m.post(ctx, room, matrixPost{key: "encrypted-" + rand.Text(), kind: "m.notice", message: notice})
	if err != nil && !errors.Is(err, errRefused) {
		return err
	}
	return m.leave(ctx, room)
}

func (m *matrix) leave(ctx context.Context, room string) error {
	err := m.call(ctx, matrixCall{method: http.MethodPost, path: roomPath(room, "leave"), body: struct{}{}})
	var refused *matrixError
	if err != nil && (!errors.As(err, &refused) || !refused.ofRoom() || refused.status >= http.StatusInternalServerError) {
		return explainMatrix(err)
	}
	return m.forget(ctx, room) // refused: the bot has already left it
}
