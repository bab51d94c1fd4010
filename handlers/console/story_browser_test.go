package console_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

// openByKeyboard opens the link to an address by keyboard.
func openByKeyboard(tab *browsertest.Tab, address string) {
	tab.Helper()
	tab.Wait(fmt.Sprintf(`document.querySelector('main a[href="%s"]')`, address))
	browsertest.Eval[bool](tab, fmt.Sprintf(`document.querySelector('main a[href="%s"]').focus(), true`, address))
	tab.Keys(kb.Enter)
}

// storyMenu opens the menu of the story whose page is shown.
func storyMenu(tab *browsertest.Tab) {
	tab.Helper()
	name := browsertest.Eval[string](tab, `document.querySelector('h1').textContent`)
	press(tab, tab.Find("button", "Actions for "+name), kb.Enter)
}

func TestBrowserStoryByKeyboard(t *testing.T) {
	browsertest.Parallel(t)
	s := newStorySite(t, true, map[string]string{"3_qa/2_story_audit.md": "# Audit log\n"})
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/")
	openByKeyboard(tab, auditPage)
	tab.Find("heading", "Audit log")
	storyMenu(tab)
	press(tab, tab.Find("button", "Block"), kb.Enter) // the dialog opens with the reason in focus
	tab.Wait(`document.activeElement.name === 'reason'`)
	tab.Keys("waiting for a key" + kb.Enter)
	tab.WaitText("Blocked for")
	press(tab, tab.Find("button", "Undo"), kb.Enter)
	tab.WaitText("No longer blocked.")
	press(tab, tab.Find("button", "Move to Merge"), kb.Enter)
	tab.WaitText("Moved to Merge.")
	press(tab, tab.Find("button", "Undo"), kb.Enter)
	tab.WaitText("Moved to QA.")
	if s.file("3_qa/2_story_audit.md") == "" {
		t.Error("it has not come back")
	}
	storyMenu(tab)
	press(tab, tab.Find("button", "Block"), kb.Enter)
	tab.Wait(`document.activeElement.name === 'reason'`)
	tab.Keys("unblocked again at once" + kb.Enter)
	press(tab, tab.Find("button", "Unblock"), kb.Enter)
	tab.WaitText("No longer blocked.")
}

// TestBrowserKeepsWhatIsTypedWhileTheStoryChanges: a change that somebody else makes meanwhile is not overwritten.
func TestBrowserKeepsWhatIsTypedWhileTheStoryChanges(t *testing.T) {
	browsertest.Parallel(t)
	s := newStorySite(t, true, map[string]string{"3_qa/2_story_audit.md": "# Audit log\n"})
	tab := browsertest.Open(t)
	tab.Goto(s.URL + auditPage)
	storyMenu(tab)
	tab.Find("button", "Block").Click()
	tab.Find("textbox", "Reason").Type("half a rea")
	const theirs = "# Audit log\n\nWritten by another.\n"
	if err := os.WriteFile(filepath.Join(s.dir, "3_qa/2_story_audit.md"), []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	tab.WaitText("Written by another.")
	if got := browsertest.Eval[string](tab, `document.querySelector(':popover-open input[name=reason]').value`); got != "half a rea" {
		t.Errorf("the reason is %q", got)
	}
	tab.Keys("son" + kb.Enter)
	tab.WaitText("look at it, then try again.")
	tab.WaitText("half a reason")
	tab.Wait(`!document.querySelector(':popover-open')`)
	if text := s.file("3_qa/2_story_audit.md"); text != theirs {
		t.Errorf("overwritten: %s", text)
	}
	// The browser logs each error status, from another process than the page's.
	waittest.Until(t, "the refusal's error status", func() bool { return len(tab.Complaints()) > 0 })
}

func TestBrowserStoryWithoutScripts(t *testing.T) {
	browsertest.Parallel(t)
	s := newStorySite(t, true, map[string]string{"3_qa/2_story_audit.md": auditLog})
	tab := browsertest.Open(t)
	tab.Scripts(false)
	tab.Goto(s.URL + auditPage)
	tab.Find("button", "Unblock").Click()
	tab.WaitText("No longer blocked.")
	tab.Find("button", "Undo").Click()
	tab.WaitText("Blocked for")
	tab.Find("button", "Actions for Audit log for administrators").Click()
	tab.Find("button", "Move to Current").Click()
	tab.WaitText("Moved to Current.")
	tab.Find("searchbox", "Find a story, project, agent").Type("audit" + kb.Enter)
	tab.Find("heading", "Search")
	openByKeyboard(tab, auditPage)
	tab.Find("heading", "Audit log for administrators")
}

// TestBrowserStoryIsAccessible even where it can be changed, with a dialog open.
func TestBrowserStoryIsAccessible(t *testing.T) {
	browsertest.Parallel(t)
	s := newStorySite(t, true, map[string]string{
		"3_qa/2_story_audit.md": auditLog + "\n```\n" + strings.Repeat("wide ", 100) + "\n```\n\n|" + strings.Repeat("a|", 50) + "\n|" + strings.Repeat("-|", 50) + "\n\n" + strings.Repeat("W", 500),
	})
	s.move("webshop", "9_story_audit_"+strings.Repeat("x", 300), "3_qa", "5_done", time.Now())
	tab := browsertest.Open(t)
	for _, path := range []string{"/search?q=audit", "/projects/webshop/stories/9_story_audit_" + strings.Repeat("x", 300), auditPage} {
		tab.Goto(s.URL + path)
		tab.AccessibleAt(360, 768, 1280, 2560)
	}
	storyMenu(tab)
	tab.Find("button", "Change the reason").Click()
	tab.Wait(`document.activeElement.name === 'reason'`)
	tab.AccessibleAt(360, 768, 1280, 2560)
}

func TestStoryPagesNeedALogin(t *testing.T) {
	s := newWholeSite(t)
	for path, next := range map[string]string{
		"/search?q=x": "%2Fsearch%3Fq%3Dx", "/projects/alpha/stories/12_story_pay": "%2Fprojects%2Falpha%2Fstories%2F12_story_pay",
	} {
		if to := s.Get(path).WantStatus(t, http.StatusSeeOther).Header.Get("Location"); to != "/login?next="+next {
			t.Errorf("%s led to %s", path, to)
		}
	}
	s.Submit("/projects/alpha/stories/12_story_pay", "do", "unblock").WantStatus(t, http.StatusUnauthorized)
}

// TestALongJourneyBeginsWhereTheStoryIs: its station is visible, though the track is wider than the window.
func TestALongJourneyBeginsWhereTheStoryIs(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	stages := []string{"01_backlog:"}
	for i := range 18 {
		stages = append(stages, fmt.Sprintf("%02d_step:", i+2))
	}
	s.add("alpha", board(append(stages, "20_review: 14_story_login", "21_done:")...))
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/projects/alpha/stories/14_story_login")
	tab.Wait(`(box => box.left > 0 && box.right < innerWidth)(document.querySelector('.journey [aria-current]').getBoundingClientRect())`)
}

// TestBrowserAQuestionAndTheBlockStandOnOnePost, the question first; beside a short text there is no hole.
func TestBrowserAQuestionAndTheBlockStandOnOnePost(t *testing.T) {
	browsertest.Parallel(t)
	s := newStorySite(t, true, map[string]string{"3_qa/2_story_audit.md": auditLog})
	s.asks(domain.Question{Kind: domain.QuestionText, Prompt: "Which key?", Project: "webshop", StoryID: "2_story_audit"})
	tab := browsertest.Open(t)
	tab.Goto(s.URL + auditPage)
	const bottom, top = `document.querySelector('%s').getBoundingClientRect().bottom`, `document.querySelector('%s').getBoundingClientRect().top`
	for _, width := range []int64{360, 1280, 2560} {
		tab.Size(width, 900)
		if got := browsertest.Eval[float64](tab, fmt.Sprintf(top+" - "+bottom, ".question + .notice", ".question")); got < -2 || got > 2 {
			t.Errorf("%d px: between the question and the block are %v px", width, got)
		}
	}
	tab.Size(1280, 900)
	if got := browsertest.Eval[float64](tab, fmt.Sprintf(bottom+" - "+bottom, ".reading article", ".reading aside")); got < -2 || got > 2 {
		t.Errorf("the text ends %v px from where what is beside it ends", got)
	}
	tab.AccessibleAt(360, 1280)
}
