package bot

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
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

// answerInvitations answers what is still to be answered. A homeserver tells of an invitation once.
func (m *matrix) answerInvitations(ctx context.Context) error {
	m.mu.Lock()
	invited := maps.Clone(m.session.Invited)
	m.mu.Unlock()
	for room, sender := range invited {
		if err := m.answerInvitation(ctx, room, sender); err != nil {
			return err
		}
		if err := m.change(ctx, func(s *matrixSession) { delete(s.Invited, room) }); err != nil {
			return err
		}
	}
	return nil
}

// answerInvitation joins a room that an operator invites to, and declines the invitation of anybody else.
func (m *matrix) answerInvitation(ctx context.Context, room, sender string) error {
	if !slices.Contains(m.operators, sender) {
		m.log.InfoContext(ctx, "bot: invitation declined", "room", room, "sender", sender)
		m.remark("The last invitation, from " + cmp.Or(short(sender, maxName), "somebody") + ", was declined: bot.operators does not list them.")
		return m.leave(ctx, room)
	}
	err := m.call(ctx, matrixCall{method: http.MethodPost, path: "/v3/rooms/" + url.PathEscape(room) + "/join", body: struct{}{}})
	var refused *matrixError
	if errors.As(err, &refused) && refused.ofRoom() {
		// An invitation may be withdrawn, or its room's servers gone: that is no failure of the bot.
		m.log.WarnContext(ctx, "bot: cannot join", "room", room, "error", err)
		m.remark("The last room could not be joined: " + cmp.Or(refused.message, refused.code) + ".")
		return nil
	}
	if err != nil {
		return explainMatrix(err)
	}
	m.log.InfoContext(ctx, "bot: joined", "room", room)
	return m.enter(ctx, room)
}

func (m *matrix) remark(note string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note = note
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

// isMissing reports whether err says that a room has no such state, or that it is not for us to see.
func isMissing(err error) bool {
	var refused *matrixError
	return errors.As(err, &refused) && (refused.code == "M_NOT_FOUND" || refused.code == "M_FORBIDDEN")
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
