package matrix

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"switchyard/internal/bot"
)

// joinLimit is the time limit for joining a room, for which a homeserver may have to ask others that are down.
const joinLimit = 30 * time.Second

// invitation is what is known about a room to which the bot is invited.
type invitation struct {
	Sender string `json:"sender"` // "" if the homeserver does not say
	Direct bool   `json:"direct,omitempty"`
	Space  bool   `json:"space,omitempty"`
}

// readInvitation reads the room state in an invitation of user.
func readInvitation(state []roomEvent, user string) invitation {
	var i invitation
	for _, e := range state {
		content := readState(e.Content)
		switch {
		case e.isMembershipOf(user):
			i.Sender, i.Direct = e.Sender, content.Direct
		case e.Type == "m.room.create":
			i.Space = content.Type == spaceType
		}
	}
	return i
}

// answerInvitations answers the stored invitations, since a homeserver reports each only once. After a crash some may
// be answered again, which changes nothing.
func (m *membership) answerInvitations(ctx context.Context) error {
	var answered []string
	var failed error
	for room, i := range m.now().Invitations {
		if failed = m.answerInvitation(ctx, room, i); failed != nil {
			break
		}
		answered = append(answered, room)
	}
	return errors.Join(failed, m.change(ctx, func(s *savedSession) {
		for _, room := range answered {
			delete(s.Invitations, room)
		}
	}))
}

// answerInvitation joins the room if an operator sent the invitation or the room replaces one of the bot's. It declines
// any other invitation.
func (m *membership) answerInvitation(ctx context.Context, room string, i invitation) error {
	if m.isMember(room) { // it has meanwhile joined as the room's successor
		return nil
	}
	if upgraded := m.predecessor(room); upgraded != "" {
		_, err := m.follow(ctx, upgraded, room, i.Sender)
		return err
	}
	if !slices.Contains(m.operators, i.Sender) {
		m.log.InfoContext(ctx, "bot: invitation declined", "room", room, "sender", i.Sender)
		m.remark("The last invitation, from " + cmp.Or(bot.Short(i.Sender, bot.MaxName), "somebody") +
			", was declined: bot.operators does not list them.")
		return m.leave(ctx, room)
	}
	if i.Space {
		m.log.InfoContext(ctx, "bot: invitation to a space declined", "room", room, "sender", i.Sender)
		m.remark(spaceNews)
		return m.leave(ctx, room)
	}
	if joined, err := m.join(ctx, room, ""); !joined {
		return err
	}
	return m.enter(ctx, room, i.Direct)
}

// join joins a room, through the homeserver of the user via unless that is "". It returns false without an error when
// the room cannot be joined, which is not a failure of the bot: the invitation may have been withdrawn, or the room's
// servers be down.
func (m *membership) join(ctx context.Context, room, via string) (bool, error) {
	call := apiCall{method: http.MethodPost, path: "/v3/join/" + url.PathEscape(room), body: struct{}{}}
	if _, server, ok := strings.Cut(via, ":"); ok {
		call.query = url.Values{"server_name": {server}, "via": {server}} // the older and the newer name of the parameter
	}
	limited, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	err := m.call(limited, call)
	if err == nil {
		m.log.InfoContext(ctx, "bot: joined", "room", room)
		return true, nil
	}
	refused, reason := asRefusal(err), ""
	switch {
	case refused.isAboutRoom():
		reason = cmp.Or(refused.message, refused.code)
	case limited.Err() != nil && ctx.Err() == nil:
		reason = "its servers do not answer"
	default:
		return false, err
	}
	m.log.WarnContext(ctx, "bot: cannot join", "room", room, "error", err)
	m.remark("The last room could not be joined: " + reason + ".")
	return false, nil
}
