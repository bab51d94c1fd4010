package bot

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"switchyard/internal/supervise"
)

const (
	// syncWait is how long the homeserver holds a sync in which nothing is new.
	syncWait = 30 * time.Second
	// earlyPause is how long the bot rests after a sync that came early with nothing, lest a server that does not hold
	// them be asked without end.
	earlyPause = 500 * time.Millisecond
	// maxQuestionAge is the age of the oldest question that is answered after the bot was away.
	maxQuestionAge = 10 * time.Minute
)

// syncFilter asks for what the bot reads and nothing else.
const syncFilter = `{"presence":{"types":[]},"account_data":{"types":[]},"room":{` +
	`"ephemeral":{"types":[]},"account_data":{"types":[]},` +
	`"state":{"types":["m.room.encryption","m.room.name"],"lazy_load_members":true},` +
	`"timeline":{"types":["m.room.message","m.room.member","m.room.encryption","m.room.name"],"limit":50}}}`

type syncAnswer struct {
	NextBatch string `json:"next_batch"`
	Rooms     struct {
		Join map[string]struct {
			State    matrixEvents `json:"state"`
			Timeline matrixEvents `json:"timeline"`
		} `json:"join"`
		Invite map[string]struct {
			State matrixEvents `json:"invite_state"`
		} `json:"invite"`
		Leave map[string]struct{} `json:"leave"`
	} `json:"rooms"`
}

// Receive follows the account's rooms by long-poll. The position is stored when what was said before it is answered;
// what is met again after a crash is answered under the same key, and so once.
func (m *matrix) Receive(ctx context.Context, answer Answer) error {
	for {
		if err := m.answerInvitations(ctx); err != nil {
			return err
		}
		m.mu.Lock()
		since := m.session.NextBatch
		m.mu.Unlock()
		query := url.Values{"filter": {syncFilter}, "timeout": {"0"}}
		if since != "" {
			query.Set("since", since)
			query.Set("timeout", strconv.FormatInt(syncWait.Milliseconds(), 10))
		}
		asked := time.Now()
		var synced syncAnswer
		err := m.call(ctx, matrixCall{method: http.MethodGet, path: "/v3/sync", query: query, answer: &synced})
		var refused *matrixError
		if errors.As(err, &refused) && refused.status == http.StatusBadRequest && since != "" {
			// The server does not know the position any more. The next attempt begins anew.
			return errors.Join(explainMatrix(err), m.change(ctx, func(s *matrixSession) { s.NextBatch = "" }))
		}
		if err == nil && synced.NextBatch == "" {
			err = &matrixError{status: http.StatusOK, message: "without next_batch"}
		}
		if err != nil {
			return explainMatrix(err)
		}
		if err := m.apply(ctx, since == "", &synced, answer); err != nil {
			return err
		}
		rooms := synced.Rooms
		if since != "" && len(rooms.Join)+len(rooms.Invite)+len(rooms.Leave) == 0 {
			supervise.Sleep(ctx, earlyPause-time.Since(asked))
		}
	}
}

// apply does what one sync asks for. What was said before the first one was not said to the bot.
func (m *matrix) apply(ctx context.Context, first bool, synced *syncAnswer, answer Answer) error {
	for room := range synced.Rooms.Leave {
		if err := m.forget(ctx, room); err != nil {
			return err
		}
	}
	for room, joined := range synced.Rooms.Join {
		if !m.isMember(room) { // joined by another device of the account
			if err := m.enter(ctx, room); err != nil {
				return err
			}
		}
		said := joined.Timeline.Events
		if joins := slices.IndexFunc(said, m.joins); joins >= 0 {
			said = said[joins:] // what stands before it is history
		}
		for _, e := range slices.Concat(joined.State.Events, said) {
			if !m.isMember(room) {
				break
			}
			if err := m.handle(ctx, room, e, first, answer); err != nil {
				return err
			}
		}
	}
	return m.change(ctx, func(s *matrixSession) {
		s.NextBatch = synced.NextBatch
		for room, invitation := range synced.Rooms.Invite {
			if s.Invited == nil {
				s.Invited = map[string]string{}
			}
			s.Invited[room] = ""
			for _, e := range invitation.State.Events {
				if e.Type == "m.room.member" && e.StateKey != nil && *e.StateKey == s.UserID {
					s.Invited[room] = e.Sender
				}
			}
		}
	})
}
