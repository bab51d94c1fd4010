//go:build stress

package stress

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/internal/bottest"
)

// TestEachEventIsPostedOnce: while the gateways, including the one that runs the bot, are killed, frozen and cut off in turn, a Matrix
// room gets one message for each event.
func TestEachEventIsPostedOnce(t *testing.T) {
	g := newGroup(t, "")
	postsEachEventOnce(t, g, func() { g.changeLeaders() })
}

// postsEachEventOnce checks that a Matrix room gets one message for each event during trouble.
func postsEachEventOnce(t *testing.T, g *group, trouble func()) {
	t.Helper()
	hs := bottest.NewHomeserver(t)
	hs.Create("!ops", "Operations", bottest.BotUser, false) // where the bot is a member already
	must(t, "POST", g.members[0].url+"/api/gateway/bot-config", hs.Config().Values(), nil)
	projects, address := newNumbered(t, 1)
	p := projects[0]
	must(t, "POST", g.members[1].url+"/api/gateway/projects", map[string]string{"name": p.name, "url": address + "/" + p.name}, nil)
	bot := func(m *member) (state string) {
		var status struct{ State string }
		if _, err := call(t.Context(), "GET", m.url+"/api/gateway/bot", "", nil, &status); err != nil {
			return err.Error()
		}
		return status.State
	}
	if !until(soon, func() bool { return bot(g.members[2]) == "connected" }) {
		t.Fatalf("the bot is %s", bot(g.members[2]))
	}
	p.pushDuring(2500*time.Millisecond, trouble) // five within ten seconds are posted one by one
	posted := func() map[int]int {
		counts := map[int]int{}
		for _, post := range hs.Posts("!ops") {
			var number int
			if _, rest, ok := strings.Cut(post.Body, "· Story "); ok {
				_, _ = fmt.Sscan(rest, &number)
				counts[number]++
			} else {
				t.Errorf("posted was %q", post.Body)
			}
		}
		return counts
	}
	if !until(late, func() bool { return len(posted()) == p.count() }) {
		t.Errorf("of %d events %d were posted", p.count(), len(posted()))
	}
	for number, times := range posted() {
		if times != 1 {
			t.Errorf("event %d was posted %d times", number, times)
		}
	}
	t.Logf("%d events, %d messages", p.count(), len(hs.Posts("!ops")))
}
