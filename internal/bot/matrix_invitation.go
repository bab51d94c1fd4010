package bot

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
)

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
