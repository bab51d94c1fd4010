package matrix

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/supervise"
)

const (
	// syncWait is how long the homeserver holds a sync without news.
	syncWait = 30 * time.Second
	// earlyPause is the least time between two syncs without news, for servers that do not hold them.
	earlyPause = 500 * time.Millisecond
)

// syncFilter requests only the events that the bot uses.
const syncFilter = `{"presence":{"types":[]},"account_data":{"types":[]},` +
	`"room":{"ephemeral":{"types":[]},"account_data":{"types":[]},` +
	`"state":{"types":[` + stateTypes + `],"lazy_load_members":true},` +
	`"timeline":{"types":["m.room.message","m.reaction","m.room.member",` + stateTypes + `],"limit":50}}}`

const stateTypes = `"m.room.encryption","m.room.name","m.room.power_levels","m.room.tombstone"`

type syncAnswer struct {
	NextBatch string `json:"next_batch"`
	Rooms     struct {
		Join   map[string]joinedRoom `json:"join"`
		Invite map[string]struct {
			State roomEvents `json:"invite_state"`
		} `json:"invite"`
		Leave map[string]struct{} `json:"leave"`
	} `json:"rooms"`
}

// joinedRoom holds the news of one of the bot's rooms.
type joinedRoom struct {
	Summary struct {
		Members *int `json:"m.joined_member_count"` // nil if unchanged
	} `json:"summary"`
	State    roomEvents `json:"state"`
	Timeline struct {
		roomEvents
		Limited bool   `json:"limited"` // there were others since the last sync, before PrevBatch
		Before  string `json:"prev_batch"`
	} `json:"timeline"`
}

// Receive follows the account's rooms by long polling. The position is stored once everything before it is answered. A
// message received again after a crash is answered only if the room does not have the answer yet.
func (c *chat) Receive(ctx context.Context, answer bot.Answer) error {
	for again := true; ; again = false {
		if err := c.answerInvitations(ctx); err != nil {
			return err
		}
		since := c.now().NextBatch
		query := url.Values{"filter": {syncFilter}, "timeout": {"0"}}
		if since != "" {
			query.Set("since", since)
			query.Set("timeout", strconv.FormatInt(syncWait.Milliseconds(), 10))
		}
		asked := time.Now()
		var synced syncAnswer
		err := c.get(ctx, "/v3/sync", query, &synced)
		if asRefusal(err).status == http.StatusBadRequest && since != "" {
			// The server no longer knows the position. The next attempt starts without one.
			return errors.Join(err, c.change(ctx, func(s *savedSession) { s.NextBatch = "" }))
		}
		if err == nil && synced.NextBatch == "" {
			err = explain(&apiError{status: http.StatusOK, message: "without next_batch"})
		}
		if err != nil {
			return err
		}
		r := receiver{chat: c, answer: answer, first: since == "", again: again, posted: map[string]map[string]bool{}}
		if err := r.apply(ctx, &synced); err != nil {
			return err
		}
		rooms := synced.Rooms
		if since != "" && len(rooms.Join)+len(rooms.Invite)+len(rooms.Leave) == 0 {
			supervise.Sleep(ctx, earlyPause-time.Since(asked))
		}
	}
}

// receiver handles the answer to one sync.
type receiver struct {
	*chat
	answer bot.Answer
	first  bool                       // the first sync: earlier messages were not for the bot
	again  bool                       // an earlier attempt may have handled part of it
	posted map[string]map[string]bool // by room, once read: the keys of the bot's newest messages
}

// apply handles all rooms. Invitations are only stored, together with the new position.
func (r *receiver) apply(ctx context.Context, synced *syncAnswer) error {
	for room := range synced.Rooms.Leave {
		if err := r.forget(ctx, room); err != nil {
			return err
		}
	}
	for _, room := range slices.Sorted(maps.Keys(synced.Rooms.Join)) {
		if err := r.applyRoom(ctx, room, synced.Rooms.Join[room]); err != nil {
			return err
		}
	}
	return r.change(ctx, func(s *savedSession) {
		s.NextBatch = synced.NextBatch
		for room, invited := range synced.Rooms.Invite {
			s.Invitations[room] = readInvitation(invited.State.Events, s.UserID)
		}
	})
}

func (r *receiver) applyRoom(ctx context.Context, room string, joined joinedRoom) error {
	if !r.isMember(room) { // joined by another device of the account
		if err := r.enter(ctx, room, false); err != nil {
			return err
		}
	}
	if n := joined.Summary.Members; n != nil {
		if err := r.changeRoom(ctx, room, func(known *knownRoom) { known.Members = *n }); err != nil {
			return err
		}
	}
	timeline := joined.Timeline.Events
	if t := joined.Timeline; t.Limited && !r.first && !slices.ContainsFunc(timeline, r.joins) {
		missed, err := r.missed(ctx, room, t.Before)
		if err != nil {
			return err
		}
		r.again = r.again || len(missed) > 0 // the homeserver may have gone back further than it was asked to
		timeline = slices.Concat(missed, timeline)
	}
	joins := slices.IndexFunc(timeline, r.joins)
	for i, e := range slices.Concat(joined.State.Events, timeline) {
		if !r.isMember(room) {
			return nil
		}
		if (e.Type == "m.room.message" || e.Type == "m.reaction") && i < len(joined.State.Events)+joins {
			continue // sent before the bot joined
		}
		if err := r.handle(ctx, room, e); err != nil {
			return err
		}
	}
	return nil
}

// maxMissed is how many messages that a sync left out are read.
const maxMissed = 1000

// missed returns what was said in a room between the last sync and the position before, oldest first.
func (r *receiver) missed(ctx context.Context, room, before string) (found []roomEvent, err error) {
	const filter = `{"types":["m.room.message","m.reaction","m.room.member"]}`
	rest, err := r.history(ctx, room, filter, before, r.now().NextBatch, maxMissed, func(e roomEvent) bool {
		found = append(found, e)
		return !r.joins(e)
	})
	if asRefusal(err).isRefusedByRoom() {
		r.log.WarnContext(ctx, "bot: messages were missed that the homeserver does not show", "room", room, "error", err)
		return nil, nil
	}
	if rest && len(found) > 0 {
		r.log.WarnContext(ctx, "bot: older messages were not read", "room", room, "read", len(found),
			"before", found[len(found)-1].ID)
	}
	slices.Reverse(found)
	return found, err
}
