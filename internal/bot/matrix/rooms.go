package matrix

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"

	"switchyard/internal/bot"
	"switchyard/internal/clock"
)

// membership enters and leaves rooms, and posts in them.
type membership struct {
	*account
	operators []string
	log       *slog.Logger
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
		known, ok := m.room(room)
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
	if encrypted, err := m.roomState(ctx, room, "m.room.encryption", nil); err != nil {
		return err
	} else if encrypted {
		return m.leaveEncrypted(ctx, room)
	}
	var create createContent
	if _, err := m.roomState(ctx, room, "m.room.create", &create); err != nil {
		return err
	}
	if create.Type == spaceType {
		m.remark(spaceNews)
		return m.leave(ctx, room)
	}
	var name nameContent
	if _, err := m.roomState(ctx, room, "m.room.name", &name); err != nil {
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
		return m.setMuted(ctx, room, 0)
	case !refused.isRefusedByRoom() || refused.status < http.StatusBadRequest:
		return err
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
	return fmt.Errorf("%w: %w", bot.ErrRefused, err)
}

// setMuted records since when the bot may not post in a room, 0 if it may. An earlier time is kept.
func (m *membership) setMuted(ctx context.Context, room string, sinceMS int64) error {
	return m.changeRoom(ctx, room, func(r *knownRoom) {
		if sinceMS == 0 || r.MutedSinceMS == 0 {
			r.MutedSinceMS = sinceMS
		}
	})
}
