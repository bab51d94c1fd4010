package matrix

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"

	"switchyard/internal/bot"
)

// membership enters and leaves rooms, and posts in them.
type membership struct {
	*account
	operators []string
	log       *slog.Logger
}

// A space is a room that lists rooms: nobody reads messages there.
const (
	spaceType = "m.space"
	spaceNews = "The last invitation was to a space; invite the bot to a room."
)

// reconcile updates the known rooms to those that the homeserver reports.
func (m *membership) reconcile(ctx context.Context) error {
	var joined struct {
		Rooms []string `json:"joined_rooms"`
	}
	if err := m.get(ctx, "/v3/joined_rooms", nil, &joined); err != nil {
		return err
	}
	var profile struct {
		DisplayName string `json:"displayname"`
	}
	// Without a display name people address the bot by its id.
	_ = m.get(ctx, "/v3/profile/"+url.PathEscape(m.now().UserID)+"/displayname", nil, &profile)
	err := m.change(ctx, func(s *savedSession) {
		s.rename(profile.DisplayName)
		for room := range s.Rooms {
			if !slices.Contains(joined.Rooms, room) {
				delete(s.Rooms, room)
			}
		}
	})
	for _, room := range joined.Rooms {
		if err != nil {
			return err
		}
		known, ok := m.now().Rooms[room]
		switch {
		case !ok:
			err = m.enter(ctx, room, false)
		case known.Successor != "":
			_, err = m.follow(ctx, room, known.Successor, "")
		}
	}
	return err
}

// enter adds a joined room to the bot's rooms, or leaves it if it is encrypted or a space.
func (m *membership) enter(ctx context.Context, room string, direct bool) error {
	if _, encrypted, err := m.roomState(ctx, room, "m.room.encryption"); err != nil {
		return err
	} else if encrypted {
		return m.leaveEncrypted(ctx, room)
	}
	create, _, err := m.roomState(ctx, room, "m.room.create")
	if err != nil {
		return err
	}
	if create.Type == spaceType {
		m.remark(spaceNews)
		return m.leave(ctx, room)
	}
	name, _, err := m.roomState(ctx, room, "m.room.name")
	if err != nil {
		return err
	}
	return m.change(ctx, func(s *savedSession) {
		s.Rooms[room] = knownRoom{Name: bot.Short(name.Name, bot.MaxName), Direct: direct}
	})
}

// leaveEncrypted says why and leaves: the bot cannot read encrypted messages, and must not post unencrypted ones there.
func (m *membership) leaveEncrypted(ctx context.Context, room string) error {
	m.log.InfoContext(ctx, "bot: left an encrypted room", "room", room)
	m.remark("It left the last room because it is encrypted; invite it to one without encryption.")
	notice := bot.Message{{bot.Plain("This room is encrypted, which I do not support, so I am leaving. " +
		"Please invite me to a room without encryption.")}}
	err := m.post(ctx, room, outgoing{key: "encrypted-" + rand.Text(), kind: "m.notice", message: notice})
	if err != nil && !errors.Is(err, bot.ErrRefused) {
		return err
	}
	return m.leave(ctx, room)
}

func (m *membership) leave(ctx context.Context, room string) error {
	err := m.call(ctx, apiCall{method: http.MethodPost, path: roomPath(room, "leave"), body: struct{}{}})
	if err != nil && !asRefusal(err).isRefusedByRoom() {
		return err
	}
	return m.forget(ctx, room) // refused: the bot has already left it
}

// post sends a message event, to the room that replaces this one if it has been upgraded. It returns ErrRefused when
// the bot may not post there.
func (m *membership) post(ctx context.Context, room string, p outgoing) error {
	err := m.call(ctx, apiCall{
		method: http.MethodPut, path: roomPath(room, "send/m.room.message/"+url.PathEscape(p.key)), body: p.content(),
	})
	refused := asRefusal(err)
	switch {
	case err == nil:
		return m.setMuted(ctx, room, false)
	case !refused.isRefusedByRoom():
		return err
	}
	if followed, err := m.followTombstone(ctx, room); err != nil {
		return err
	} else if followed {
		return m.post(ctx, m.successor(room), p)
	}
	if refused.code == "M_FORBIDDEN" {
		if err := m.setMuted(ctx, room, true); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %w", bot.ErrRefused, err)
}

// maxMoved is how many upgrades are remembered, for messages that were on their way to the old room.
const maxMoved = 100

// followTombstone moves on from an upgraded room that refuses messages, and reports whether the bot is in the new room.
func (m *membership) followTombstone(ctx context.Context, room string) (bool, error) {
	if !m.isMember(room) {
		return m.successor(room) != room, nil
	}
	tombstone, _, err := m.roomState(ctx, room, "m.room.tombstone")
	if err != nil {
		return false, err
	}
	return m.follow(ctx, room, tombstone.Replacement, "")
}

// follow moves from a room to its successor, through the homeserver of the user via, and reports whether the bot is in
// it. While the successor cannot be joined, the bot stays: it accepts an invitation to it from anybody. A sync and a
// refused message may both call follow, even concurrently, so each step may be done twice.
func (m *membership) follow(ctx context.Context, room, successor, via string) (bool, error) {
	if successor == "" || successor == room || !m.isMember(room) {
		return false, nil
	}
	if err := m.changeRoom(ctx, room, func(r *knownRoom) { r.Successor = successor }); err != nil {
		return false, err
	}
	if !m.isMember(successor) {
		if joined, err := m.join(ctx, successor, cmp.Or(via, room)); !joined {
			return false, err
		}
		// Users who may close a room must not be able to send the bot where it was never invited.
		create, _, err := m.roomState(ctx, successor, "m.room.create")
		if err != nil {
			return false, err
		}
		if create.Predecessor.RoomID != room {
			m.log.WarnContext(ctx, "bot: the new room does not name the old one", "room", room, "new", successor)
			m.remark("It left the last room, which was closed and names a successor that does not replace it.")
			if err := m.leave(ctx, successor); err != nil {
				return false, err
			}
			return false, m.leave(ctx, room)
		}
		if err := m.enter(ctx, successor, m.now().Rooms[room].Direct); err != nil {
			return false, err
		}
	}
	m.log.InfoContext(ctx, "bot: followed an upgrade", "room", room, "new", successor)
	err := m.change(ctx, func(s *savedSession) {
		if len(s.Moved) >= maxMoved {
			s.Moved = map[string]string{}
		}
		s.Moved[room] = successor
	})
	if err != nil {
		return false, err
	}
	return m.isMember(successor), m.leave(ctx, room)
}
