package matrix

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"switchyard/internal/bot"
)

// A space is a room that lists rooms: nobody reads messages there.
const (
	spaceType = "m.space"
	spaceNews = "The last invitation was to a space; invite the bot to a room."
)

// reconcile updates the known rooms to those that the homeserver reports.
func (c *chat) reconcile(ctx context.Context) error {
	var joined struct {
		Rooms []string `json:"joined_rooms"`
	}
	if err := c.get(ctx, "/v3/joined_rooms", nil, &joined); err != nil {
		return err
	}
	var profile struct {
		DisplayName string `json:"displayname"`
	}
	// Without a display name people address the bot by its id.
	_ = c.get(ctx, "/v3/profile/"+url.PathEscape(c.now().UserID)+"/displayname", nil, &profile)
	err := c.change(ctx, func(s *savedSession) {
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
		known, ok := c.now().Rooms[room]
		switch {
		case !ok:
			err = c.enter(ctx, room, false)
		case known.Successor != "":
			_, err = c.follow(ctx, room, known.Successor, "")
		}
	}
	return err
}

// enter adds a joined room to the bot's rooms, or leaves it if it is encrypted or a space.
func (c *chat) enter(ctx context.Context, room string, direct bool) error {
	if _, encrypted, err := c.roomState(ctx, room, "m.room.encryption"); err != nil {
		return err
	} else if encrypted {
		return c.leaveEncrypted(ctx, room)
	}
	create, _, err := c.roomState(ctx, room, "m.room.create")
	if err != nil {
		return err
	}
	if create.Type == spaceType {
		c.news.Store(spaceNews)
		return c.leave(ctx, room)
	}
	name, _, err := c.roomState(ctx, room, "m.room.name")
	if err != nil {
		return err
	}
	return c.change(ctx, func(s *savedSession) {
		s.Rooms[room] = knownRoom{Name: bot.Short(name.Name, bot.MaxName), Direct: direct}
	})
}

// leaveEncrypted says why and leaves: the bot cannot read encrypted messages, and must not post unencrypted ones there.
func (c *chat) leaveEncrypted(ctx context.Context, room string) error {
	c.log.InfoContext(ctx, "bot: left an encrypted room", "room", room)
	c.news.Store("It left the last room because it is encrypted; invite it to one without encryption.")
	notice := bot.Message{{bot.Plain("This room is encrypted, which I do not support, so I am leaving. " +
		"Please invite me to a room without encryption.")}}
	_, err := c.post(ctx, room, outgoing{key: "encrypted-" + rand.Text(), kind: "m.notice", message: notice})
	if err != nil && !errors.Is(err, bot.ErrRefused) {
		return err
	}
	return c.leave(ctx, room)
}

func (c *chat) leave(ctx context.Context, room string) error {
	err := c.call(ctx, apiCall{method: http.MethodPost, path: roomPath(room, "leave"), body: struct{}{}})
	if err != nil && !asRefusal(err).isRefusedByRoom() {
		return err
	}
	return c.forget(ctx, room) // refused: the bot has already left it
}

// post sends a message event, to the room that replaces this one if it has been upgraded, and returns the event's id.
// It returns ErrRefused when the bot may not post there.
func (c *chat) post(ctx context.Context, room string, p outgoing) (id string, err error) {
	var sent struct {
		ID string `json:"event_id"`
	}
	err = c.call(ctx, apiCall{
		method: http.MethodPut, path: roomPath(room, "send/m.room.message/"+url.PathEscape(p.key)), body: p.content(),
		answer: &sent,
	})
	refused := asRefusal(err)
	switch {
	case err == nil:
		return sent.ID, c.setMuted(ctx, room, false)
	case !refused.isRefusedByRoom():
		return "", err
	}
	if followed, err := c.followTombstone(ctx, room); err != nil {
		return "", err
	} else if followed {
		return c.post(ctx, c.successor(room), p)
	}
	if refused.code == "M_FORBIDDEN" {
		if err := c.setMuted(ctx, room, true); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%w: %w", bot.ErrRefused, err)
}

// maxMoved is how many upgrades are remembered, for messages that were on their way to the old room.
const maxMoved = 100

// followTombstone moves on from an upgraded room that refuses messages, and reports whether the bot is in the new room.
func (c *chat) followTombstone(ctx context.Context, room string) (bool, error) {
	if !c.isMember(room) {
		return c.successor(room) != room, nil
	}
	tombstone, _, err := c.roomState(ctx, room, "m.room.tombstone")
	if err != nil {
		return false, err
	}
	return c.follow(ctx, room, tombstone.Replacement, "")
}

// follow moves from a room to its successor, through the homeserver of the user via, and reports whether the bot is in
// it. While the successor cannot be joined, the bot stays: it accepts an invitation to it from anybody. A sync and a
// refused message may both call follow, even concurrently, so each step may be done twice.
func (c *chat) follow(ctx context.Context, room, successor, via string) (bool, error) {
	if successor == "" || successor == room || !c.isMember(room) {
		return false, nil
	}
	if err := c.changeRoom(ctx, room, func(r *knownRoom) { r.Successor = successor }); err != nil {
		return false, err
	}
	if !c.isMember(successor) {
		if joined, err := c.join(ctx, successor, cmp.Or(via, room)); !joined {
			return false, err
		}
		// Users who may close a room must not be able to send the bot where it was never invited.
		create, _, err := c.roomState(ctx, successor, "m.room.create")
		if err != nil {
			return false, err
		}
		if create.Predecessor.RoomID != room {
			c.log.WarnContext(ctx, "bot: the new room does not name the old one", "room", room, "new", successor)
			c.news.Store("It left the last room, which was closed and names a successor that does not replace it.")
			if err := c.leave(ctx, successor); err != nil {
				return false, err
			}
			return false, c.leave(ctx, room)
		}
		if err := c.enter(ctx, successor, c.now().Rooms[room].Direct); err != nil {
			return false, err
		}
	}
	c.log.InfoContext(ctx, "bot: followed an upgrade", "room", room, "new", successor)
	err := c.change(ctx, func(s *savedSession) {
		if len(s.Moved) >= maxMoved {
			s.Moved = map[string]string{}
		}
		s.Moved[room] = successor
	})
	if err != nil {
		return false, err
	}
	return c.isMember(successor), c.leave(ctx, room)
}

// joinLimit is the time limit for joining a room, for which a homeserver may have to ask others that are down.
const joinLimit = 30 * time.Second

// invitation is what is known about a room to which the bot is invited.
type invitation struct {
	Sender string `json:"sender"` // "" if the homeserver does not say
	Direct bool   `json:"direct,omitempty"`
	Space  bool   `json:"space,omitempty"`
}

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
func (c *chat) answerInvitations(ctx context.Context) error {
	var answered []string
	var failed error
	for room, i := range c.now().Invitations {
		if failed = c.answerInvitation(ctx, room, i); failed != nil {
			break
		}
		answered = append(answered, room)
	}
	return errors.Join(failed, c.change(ctx, func(s *savedSession) {
		for _, room := range answered {
			delete(s.Invitations, room)
		}
	}))
}

// answerInvitation joins the room if an operator sent the invitation or the room replaces one of the bot's. It declines
// any other invitation.
func (c *chat) answerInvitation(ctx context.Context, room string, i invitation) error {
	if c.isMember(room) { // it has meanwhile joined as the room's successor
		return nil
	}
	if upgraded := c.predecessor(room); upgraded != "" {
		_, err := c.follow(ctx, upgraded, room, i.Sender)
		return err
	}
	if !slices.Contains(c.operators, i.Sender) {
		c.log.InfoContext(ctx, "bot: invitation declined", "room", room, "sender", i.Sender)
		c.news.Store("The last invitation, from " + cmp.Or(bot.Short(i.Sender, bot.MaxName), "somebody") +
			", was declined: bot.operators does not list them.")
		return c.leave(ctx, room)
	}
	if i.Space {
		c.log.InfoContext(ctx, "bot: invitation to a space declined", "room", room, "sender", i.Sender)
		c.news.Store(spaceNews)
		return c.leave(ctx, room)
	}
	if joined, err := c.join(ctx, room, ""); !joined {
		return err
	}
	return c.enter(ctx, room, i.Direct)
}

// join joins a room, through the homeserver of the user via unless that is "". It returns false without an error when
// the room cannot be joined, which is not a failure of the bot: the invitation may have been withdrawn, or the room's
// servers may be down.
func (c *chat) join(ctx context.Context, room, via string) (bool, error) {
	call := apiCall{method: http.MethodPost, path: "/v3/join/" + url.PathEscape(room), body: struct{}{}}
	if _, server, ok := strings.Cut(via, ":"); ok {
		call.query = url.Values{"server_name": {server}, "via": {server}} // the older and the newer name of the parameter
	}
	limited, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	err := c.call(limited, call)
	if err == nil {
		c.log.InfoContext(ctx, "bot: joined", "room", room)
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
	c.log.WarnContext(ctx, "bot: cannot join", "room", room, "error", err)
	c.news.Store("The last room could not be joined: " + reason + ".")
	return false, nil
}
