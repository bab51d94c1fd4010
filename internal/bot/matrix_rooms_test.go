package bot_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"switchyard/internal/bottest"
	"switchyard/internal/domain"
)

func TestMatrixShowsWhereItMayNotPost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		h.Mute("!ops", true)
		p.waitState(domain.BotConnected, "The bot may not post in Operations (since ")
		p.kill()
		p.start()
		p.waitState(domain.BotConnected, "may not post in Operations (since ")
		h.Mute("!ops", false)
		p.waitNoDetail()
		// A refusal shows in the status, too, whatever the power levels say, until a message is accepted.
		h.Expel("!ops")
		p.gateway.move("alpha", 1)
		p.waitState(domain.BotConnected, "may not post in Operations")
	})
}

func TestTeamShowsWhereItMayNotPost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, s := team(t)
		s.Do(func() { s.ReadOnly = "C1" })
		p.gateway.move("alpha", 1)
		p.waitState(domain.BotConnected, "The bot may not post in #ops (since ")
		s.Do(func() { s.ReadOnly = "" })
		p.gateway.move("alpha", 2)
		p.waitNoDetail()
	})
}

func TestMatrixFollowsARoomUpgrade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		h.Upgrade("!ops", "!ops2", bottest.Stranger)
		h.Invite("!ops2", bottest.Stranger) // like clients for every member
		eventually(t, func() string {
			if h.IsMember("!ops2") && !h.IsMember("!ops") {
				return ""
			}
			return "not in the new room"
		})
		p.waitRooms(1)
		p.gateway.move("alpha", 1)
		if got := roomPosts(t, h, "!ops2", 1); !strings.Contains(got[0].Body, "Story 1") {
			t.Errorf("posts %+v", got)
		}
		h.Say("!ops2", bottest.Operator, "!help")
		roomPosts(t, h, "!ops2", 2)
		if rooms := p.supervisor.Status().Rooms; !slices.Equal(rooms, []string{"Operations"}) {
			t.Errorf("rooms %v", rooms)
		}
	})
}

// Messages for the old room when it was replaced are posted in the new one.
func TestMatrixLosesNothingInARoomUpgrade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		sending, upgraded := make(chan struct{}), make(chan struct{})
		h.Do(func() {
			h.Before = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/send/") {
					return false
				}
				h.Do(func() { h.Before, h.Limited = nil, 1 }) // so that the message is received a second time
				close(sending)
				<-upgraded
				return false
			}
		})
		p.gateway.move("alpha", 1)
		<-sending
		h.Invite("!ops2", bottest.Operator)
		h.Upgrade("!ops", "!ops2", bottest.Operator)
		close(upgraded)
		if got := roomPosts(t, h, "!ops2", 1); !strings.Contains(got[0].Body, "Story 1") {
			t.Errorf("posts %+v", got)
		}
	})
}

// Users who may close a room must not be able to send the bot to any other.
func TestMatrixDoesNotFollowToARoomThatIsNoSuccessor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		h.Create("!elsewhere", "Elsewhere", bottest.Stranger, false)
		h.Event("!ops", bottest.Stranger, "m.room.tombstone", map[string]any{"replacement_room": "!elsewhere"})
		h.Invite("!elsewhere", bottest.Stranger)
		eventually(t, func() string {
			if !strings.Contains(p.logs.String(), "does not name the old one") || h.IsMember("!elsewhere") || h.IsMember("!ops") {
				return "still a member"
			}
			return ""
		})
	})
}

func TestMatrixDoesNotJoinSpaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		h.CreateSpace("!space", "Everything", bottest.Operator)
		h.Invite("!space", bottest.Operator)
		h.Create("!two", "Two", bottest.Operator, false)
		h.Invite("!two", bottest.Operator)
		p.waitRooms(2)
		if rooms := p.supervisor.Status().Rooms; !slices.Equal(rooms, []string{"Operations", "Two"}) {
			t.Errorf("rooms %v", rooms)
		}
		if h.Joined("!space") {
			t.Error("joined a space")
		}
	})
}
