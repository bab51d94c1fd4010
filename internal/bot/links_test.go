package bot_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"switchyard/internal/bot"
	"switchyard/internal/bottest"
	"switchyard/internal/domain"
)

func TestMessagesLinkToStories(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const public = "https://yard.example/"
		happen := func(g *fakeGateway) {
			g.happen("a|b/c", domain.StoryBlocked, `"story_id":"1_<pay>","story_name":"Pay","reason":"key"`)
			g.happen("alpha", domain.StoryBlocked, `"story_id":"`+strings.Repeat("x", 300)+`"`)
		}

		h := bottest.NewMemoryHomeserver(t)
		p := newProcess(t, bot.Options{PublicURL: public, Operators: []string{bottest.Operator}})
		p.gateway.configure(h.Config(), nil)
		p.start()
		h.Create("!ops", "Operations", bottest.Operator, false)
		h.Invite("!ops", bottest.Operator)
		p.waitRooms(1)
		happen(p.gateway)
		got := roomPosts(t, h, "!ops", 2)
		if want := `<a href="https://yard.example/projects/a%7Cb%2Fc/stories/1_%3Cpay%3E"><code>1_&lt;pay&gt;</code></a> · Pay: key`; !strings.HasSuffix(got[0].HTML, want) {
			t.Errorf("HTML %s\nwant %s", got[0].HTML, want)
		}
		if strings.Contains(got[1].HTML, "href") {
			t.Errorf("an endless id is linked: %s", got[1].HTML)
		}

		s := bottest.NewMemoryWorkspace(t)
		p = newProcess(t, bot.Options{PublicURL: public, TeamAPIURL: s.HTTP.URL + "/api"})
		p.gateway.configure(s.Config(), nil)
		p.start()
		p.waitState(domain.BotConnected, "")
		happen(p.gateway)
		if want := "<https://yard.example/projects/a%7Cb%2Fc/stories/1_%3Cpay%3E|1ˍ&lt;pay&gt;> · Pay: key"; !strings.HasSuffix(teamPosts(t, s, 1)[0].Text, want) {
			t.Errorf("mrkdwn %s\nwant %s", teamPosts(t, s, 1)[0].Text, want)
		}
	})
}
