package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
)

// chatSite is a site of stories that wait, with a bot in two rooms.
func chatSite(t *testing.T) (*consoleSite, *gatewaytest.Bot) {
	t.Helper()
	bot := &gatewaytest.Bot{Rooms: []string{"#yard", "#payments"}}
	s := newConsoleSiteWithBot(t, bot)
	since := func(id, blocked string, hours int) domain.Item {
		return domain.Item{StoryID: id, StoryName: "Name of " + id, Blocked: blocked, Since: time.Now().Add(-time.Duration(hours) * time.Hour)}
	}
	s.add("acme/web", []domain.Stage{
		{Name: "1_backlog"}, {Name: "2_current", Label: "In Progress", Items: []domain.Item{since("7_slow", "", 96), since("8_quick", "", 2)}}, {Name: "5_done"},
	})
	s.add("beta", []domain.Stage{{Name: "1_backlog"}, {Name: "2_review", Items: []domain.Item{since("9_slower", "which table?", 240)}}, {Name: "5_done"}})
	return s, bot
}

// told returns what the bot was told last, the stories by their ids.
func told(bot *gatewaytest.Bot) (word, stories string) {
	list := bot.AllTold()
	if len(list) == 0 {
		return "", ""
	}
	last := list[len(list)-1]
	var ids []string
	for _, s := range last.Stories {
		ids = append(ids, s.Project+" "+s.StoryID+" "+s.Stage+" "+s.Blocked)
	}
	return last.Word, strings.Join(ids, ", ")
}

func TestTheTeamIsToldOfAStory(t *testing.T) {
	browsertest.Parallel(t)
	s, bot := chatSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/projects/acme%2Fweb/stories/7_slow")
	storyMenu(tab)
	press(tab, tab.Find("button", "Tell the team"), kb.Enter)
	tab.Wait(`document.activeElement.name === 'word'`)
	tab.Keys("Who can take this?" + kb.Enter)
	tab.WaitText("Told the team in #yard and #payments about 1 story.")
	if word, stories := told(bot); word != "Who can take this?" || stories != "acme/web 7_slow In Progress " {
		t.Errorf("%q about %q", word, stories)
	}
	s.Get("/audit").WantText(t, "bot.told", "Told the team about", "Who can take this?")
}

// TestTheTeamIsToldOfChosenStories: what is told stands over the rows once a story is chosen, which moves no row. A
// refresh keeps the choice.
func TestTheTeamIsToldOfChosenStories(t *testing.T) {
	browsertest.Parallel(t)
	s, bot := chatSite(t)
	tab := browsertest.Open(t)
	const bar = `document.getElementById('tell').getBoundingClientRect()`
	const row = `document.querySelector('[data-choice]').getBoundingClientRect().top`
	for _, scripts := range []bool{true, false} {
		tab.Scripts(scripts)
		tab.Goto(s.URL + "/waiting")
		tab.Find("checkbox", "Choose 8")
		before := browsertest.Eval[float64](tab, row)
		press(tab, tab.Find("checkbox", "Choose 8"), " ")
		press(tab, tab.Find("checkbox", "Choose 9"), " ")
		if !browsertest.Eval[bool](tab, bar+`.height > 40 && `+bar+`.bottom < `+row) || browsertest.Eval[float64](tab, row) != before {
			t.Error("the rows have moved, or are covered")
		}
		if scripts {
			tab.WaitText("Tell the team about 2 stories")
			list := board("1_backlog:", "2_review: 9_slower, 10_story_new", "5_done:")
			list[1].Items[0].Since, list[1].Items[0].Blocked = time.Now().Add(-240*time.Hour), "which table?"
			s.boards.set("beta", list)
			refresh(tab)
			tab.Find("checkbox", "Choose 10")
			tab.WaitText("Tell the team about 2 stories")
		}
		tab.Find("textbox", "A word of your own in #yard and #payments").Type("Before the release")
		tab.Keys(kb.Enter)
		tab.WaitText("Told the team in #yard and #payments about 2 stories.")
		if word, stories := told(bot); word != "Before the release" || stories != "beta 9_slower Review which table?, acme/web 8_quick In Progress " {
			t.Errorf("%q about %q", word, stories)
		}
	}
	tab.Scripts(true)
	tab.Goto(s.URL + "/waiting")
	browsertest.Eval[bool](tab, `document.querySelector('[data-choose]').click(), true`) // those over their usual time
	tab.WaitText("Tell the team about 2 stories")
	tab.Find("button", "Choose none").Click()
	tab.Wait(bar + `.height === 0`)
}

func TestTellingThatFailsSaysWhy(t *testing.T) {
	s, bot := chatSite(t)
	bot.TestError = domain.Errorf(domain.BadGateway, "not sent to #payments: the room refused the message")
	s.follow(s.Submit("/tell", "next", "/waiting")).WantText(t, `role="alert"`, "Not told: no story is chosen.")
	s.follow(s.Submit("/tell", "next", "/waiting", "story", "/projects/beta/stories/9_slower")).WantText(t, `role="alert"`, "Not told: not sent to #payments")
	s.Submit("/tell", "next", "/waiting", "story", "https://example.org").WantStatus(t, http.StatusBadRequest)
	s.follow(s.Submit("/tell", "next", "/waiting", "story", "/projects/beta/stories/gone")).WantText(t, "none of these stories is on a board any more")
	s.follow(s.Submit("/tell", "next", "/waiting", "word", strings.Repeat("x", 501))).WantText(t, "at most 500 characters")
	s.Get("/audit").WantNoText(t, "9_slower")
}

// TestWithoutABotThePageSaysSo instead of offering to tell the team.
func TestWithoutABotThePageSaysSo(t *testing.T) {
	s := sampleSite(t)
	for _, path := range []string{"/waiting", "/projects/alpha/stories/14_story_login"} {
		s.Get(path).WantText(t, "No chat bot is set up", "Set up the bot").WantNoText(t, `name="word"`, `data-choice`)
	}
	s.follow(s.Submit("/tell", "next", "/waiting", "story", "/projects/alpha/stories/14_story_login")).WantText(t, "Not told: no bot is set up.")
}
