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
	"switchyard/internal/waittest"
	"switchyard/views"
)

// inboxSite has two blocked stories.
func inboxSite(t *testing.T) *consoleSite {
	t.Helper()
	s := newConsoleSite(t)
	s.add("webshop", board("1_backlog:", "2_current: 14_story_login!no key, 15_story_pay!no provider", "3_done:"))
	return s
}

const loginBlocked = "blocked/webshop/14_story_login"

// inbox returns the page's open alerts and its acknowledged ones.
func inbox(page gatewaytest.Answer) (open, acknowledged string) {
	_, open, _ = strings.Cut(page.Text, `id="attention-title"`)
	open, acknowledged, _ = strings.Cut(open, `id="acknowledged"`)
	open, _, _ = strings.Cut(open, "</section>")
	acknowledged, _, _ = strings.Cut(acknowledged, "</details>")
	return open, acknowledged
}

func TestAnAlertIsAcknowledgedFromTheInboxAndBack(t *testing.T) {
	for choice, said := range map[string]string{"4h": "for 4 hours.", views.ForToday: "until tomorrow.", "": "until it changes."} {
		s := inboxSite(t)
		next := "/?q=web"
		done := s.follow(s.Submit(views.AcknowledgeURL, "key", loginBlocked, "for", choice, "next", next))
		done.WantText(t, "<title>(1) Overview", "Acknowledged "+said, `value="/?q=web"`)
		open, acknowledged := inbox(done)
		s.wantText("open", open, "Pay", "no provider", "!Login")
		s.wantText("acknowledged", acknowledged, "Login", "no key", "Acknowledged by <bdi>admin</bdi> until", "Reopen", "!Pay")
		until := s.wantAlert(loginBlocked).Acknowledged.Until
		switch hour, _, _ := until.Local().Clock(); {
		case choice == "4h" && time.Until(until).Round(time.Minute) != 4*time.Hour,
			choice == views.ForToday && (hour != 8 || until.Before(time.Now()) || time.Until(until) > 33*time.Hour),
			choice == "" && !until.IsZero():
			t.Errorf("%q is until %v", choice, until)
		}
		undone := s.follow(s.submitUndo(done))
		undone.WantText(t, "<title>(2) Overview", "It needs attention again.")
		if _, acknowledged := inbox(undone); acknowledged != "" {
			t.Errorf("still acknowledged: %s", acknowledged)
		}
	}
}

// wantAlert returns the alert with a key.
func (s *consoleSite) wantAlert(key string) domain.Alert {
	s.Helper()
	snapshot := s.Overview.Snapshot(s.Context())
	for _, a := range snapshot.Alerts.Items {
		if a.Key() == key {
			return a
		}
	}
	s.Fatalf("there is no alert %s", key)
	return domain.Alert{}
}

func TestAnAlertIsAcknowledgedOnThePageOfItsStory(t *testing.T) {
	s := inboxSite(t)
	const page = "/projects/webshop/stories/14_story_login"
	s.Get(page).WantText(t, `name="key" value="`+loginBlocked+`"`, "Acknowledge</button>", "Blocked")
	done := s.follow(s.Submit(views.AcknowledgeURL, "key", loginBlocked, "for", "", "next", page))
	done.WantText(t, "Acknowledged until it changes.", ">Login</h1>", "Acknowledged by <bdi>admin</bdi> until it changes", "Reopen</button>")
	done.WantNoText(t, "Acknowledge</button>")
	s.follow(s.Submit(views.ReopenURL, "key", loginBlocked, "next", page)).WantText(t, "It needs attention again.", "Acknowledge</button>")
	s.Get("/projects/webshop/stories/99").WantStatus(t, http.StatusNotFound)
}

func TestAStuckStorySaysSoOnItsPage(t *testing.T) {
	s := newConsoleSite(t)
	stages := board("1_backlog:", "2_current: 14_story_login, 15_story_pay", "3_done:")
	stages[1].Items[0].Since = time.Now().Add(-30 * time.Hour)
	s.add("slow", stages)
	s.Get("/projects/slow/stories/14_story_login").WantText(t, "Acknowledge</button>", "Stuck", "for longer than is usual there")
	s.Get("/projects/slow/stories/15_story_pay").WantNoText(t, "Stuck", "Acknowledge</button>")
}

func TestStuckStoriesThatAreAcknowledgedAreNotCounted(t *testing.T) {
	s := newConsoleSite(t)
	stages := board("1_backlog:", "2_current: 1_story_a, 2_story_b, 3_story_c", "3_done:")
	for i := range stages[1].Items {
		stages[1].Items[i].Since = time.Now().Add(-time.Duration(30+i) * time.Hour)
	}
	s.add("slow", stages)
	s.Get("/").WantText(t, "<title>(3) Overview", "3 stories stuck", "slow", "· 3")
	done := s.follow(s.Submit(views.AcknowledgeURL, "key", "stuck/slow/3_story_c", "next", "/"))
	done.WantText(t, "<title>(2) Overview", "2 stories stuck", "· 2", "1 acknowledged")
}

func TestStuckStoriesAreAcknowledgedTogetherAndBack(t *testing.T) {
	s := newConsoleSite(t)
	stages := board("1_backlog:", "2_current: 1_story_a, 2_story_b, 3_story_c, 4_story_d!no key", "3_done:")
	for i := range stages[1].Items {
		stages[1].Items[i].Since = time.Now().Add(-time.Duration(30+i) * time.Hour)
	}
	s.add("slow", stages)
	s.Get("/").WantText(t, "<title>(4) Overview", "3 stories stuck", `value="`+views.AllStuck+`"`)
	s.Submit(views.AcknowledgeURL, "key", "stuck/slow/3_story_c", "next", "/")
	alone := time.Now().UnixMilli() // acknowledgements of one millisecond are taken for those made together
	waittest.Until(t, "another millisecond", func() bool { return time.Now().UnixMilli() > alone })
	done := s.follow(s.Submit(views.AcknowledgeURL, "key", views.AllStuck, "for", "4h", "next", "/"))
	done.WantText(t, "<title>(1) Overview", "2 stuck stories acknowledged for 4 hours.", "3 acknowledged").WantNoText(t, "stories stuck")
	undone := s.follow(s.submitUndo(done)) // alerts acknowledged before stay acknowledged
	undone.WantText(t, "<title>(3) Overview", "They need attention again.", "2 stories stuck", "1 acknowledged")
	s.follow(s.submitUndo(done)).WantText(t, "There is nothing to acknowledge any more")
	s.Submit(views.ReopenURL, "key", views.AllStuck+"x").WantStatus(t, http.StatusBadRequest)
	s.Get("/audit").WantText(t, "2 stuck stories")
}

func TestAnAlertThatIsOverCannotBeAcknowledged(t *testing.T) {
	s := inboxSite(t)
	s.follow(s.Submit(views.AcknowledgeURL, "key", "blocked/webshop/99", "next", "//elsewhere.example")).
		WantText(t, "<title>(2) Overview", "There is nothing to acknowledge any more")
	s.Submit(views.AcknowledgeURL, "key", loginBlocked, "for", "ever").WantStatus(t, http.StatusBadRequest)
}

func TestBrowserAcknowledgesByKeyboard(t *testing.T) {
	browsertest.Parallel(t)
	s := inboxSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/")
	press(tab, tab.Find("button", "Acknowledge"), kb.Enter)
	press(tab, tab.Find("button", "For 4 hours"), kb.Enter)
	tab.WaitText("Acknowledged for 4 hours.")
	tab.WaitText("1 acknowledged")
	tab.Wait(`document.title.startsWith('(1) ')`)
	tab.Wait(`document.querySelector('[data-attention]').textContent.trim() === '1'`)
	press(tab, tab.Find("button", "Undo"), kb.Enter)
	tab.WaitText("It needs attention again.")
	tab.Wait(`document.title.startsWith('(2) ')`)

	// The second button opens the same dialog, which stays open, with its subject, while the page refreshes.
	browsertest.Eval[bool](tab, `document.querySelector('button[form=acknowledge][value$=pay]').click(), true`)
	s.boards.set("webshop", board("1_backlog:", "2_current: 14_story_login!no key, 15_story_pay!no provider, 16_story_more!nobody", "3_done:"))
	refresh(tab)
	tab.WaitText("nobody")
	press(tab, tab.Find("button", "Until it changes"), kb.Enter)
	tab.WaitText("Acknowledged until it changes.")
	tab.Wait(`document.getElementById('acknowledged').textContent.includes('Pay')`)

	tab.Scripts(false)
	tab.Goto(s.URL + "/")
	tab.Find("button", "Acknowledge").Click()
	tab.WaitText("Acknowledged until it changes.")
}
