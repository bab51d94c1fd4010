package bot_test

import (
	"fmt"
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

// TestARoomGetsWhatItsFilterSays: events one by one, digests and questions; other rooms get everything.
func TestARoomGetsWhatItsFilterSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		h.Create("!team", "Team", bottest.Operator, false)
		h.Invite("!team", bottest.Operator)
		p.waitRooms(2)
		says := func(sender, text, want string, n int) {
			t.Helper()
			h.Say("!team", sender, text)
			if got := roomPosts(t, h, "!team", n); got[n-1].Body != want {
				t.Errorf("%s: %q", text, got[n-1].Body)
			}
		}
		h.Say("!team", bottest.Operator, "filter the coffee, please")
		says(bottest.Operator, "!filter gamma", "gamma is neither a project nor one of: moved, blocked, merge failed, reviewed, events dropped.", 1)
		h.Say("!team", bottest.Stranger, "!filter alpha")
		roomPosts(t, h, "!team", 2)
		says(bottest.Operator, "filter beta two, blocked", "This room now gets only this: beta two, blocked.", 3)
		block := func(project string, n int) {
			p.gateway.happen(project, domain.StoryBlocked, fmt.Sprintf(`"story_id":"s%d","story_name":"Story %[1]d","reason":"r"`, n))
		}
		p.gateway.move("beta two", 1)
		block("alpha", 2)
		block("beta two", 3)
		roomPosts(t, h, "!ops", 3)
		if got := roomPosts(t, h, "!team", 4); !strings.Contains(got[3].Body, "Story 3") {
			t.Errorf("the only one is %q", got[3].Body)
		}
		p.kill()
		p.start()
		p.waitRooms(2)
		for n := range 20 {
			p.gateway.move("alpha", 10+n)
		}
		roomPosts(t, h, "!ops", 4)
		for n := range 20 {
			block("beta two", 40+n)
			block("alpha", 70+n)
		}
		if got := roomPosts(t, h, "!ops", 5); !strings.HasPrefix(got[4].Body, "40 events in 2 projects") {
			t.Errorf("everything: %q", got[4].Body)
		}
		if got := roomPosts(t, h, "!team", 5); !strings.HasPrefix(got[4].Body, "20 events in 1 project") || strings.Contains(got[4].Body, "alpha") {
			t.Errorf("filtered: %q", got[4].Body)
		}
		p.gateway.questions.ask(permission) // about alpha
		roomPosts(t, h, "!ops", 6)
		p.gateway.questions.ask(text)
		roomPosts(t, h, "!ops", 7)
		if got := roomPosts(t, h, "!team", 6); !strings.Contains(got[5].Body, text.Prompt) {
			t.Errorf("asked is %q", got[5].Body)
		}
		says(bottest.Operator, "!filter", "This room gets only this: beta two, blocked.", 7)
		says(bottest.Operator, "filter everything", "This room now gets everything.", 8)
		roomPosts(t, h, "!team", 9) // the first question
		p.gateway.move("alpha", 99)
		roomPosts(t, h, "!team", 10)
		says(bottest.Operator, "!filter", "This room gets everything.", 11)
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
