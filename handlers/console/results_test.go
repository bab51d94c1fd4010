package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
)

func TestWhatAnActionSaidStaysWhileItsPartRefreshes(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog:"))
	s.add("beta", board("1_backlog:"))
	agent := s.join("builder-1")
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/agents")

	// Two choices in quick succession, as with arrow keys, are one assignment.
	tab.Find("combobox", "Project of builder-1").Call(`function() {
		this.focus()
		for (const name of ["alpha", "beta"]) {
			this.value = name
			this.dispatchEvent(new Event("change", {bubbles: true}))
		}
	}`)
	tab.WaitText("builder-1 is assigned to beta.")
	if n := browsertest.Eval[int](tab, `performance.getEntriesByType("resource").filter(e => e.name.endsWith("/assign")).length`); n != 1 {
		t.Errorf("the agent was assigned %d times", n)
	}

	s.says(agent, domain.AgentRunning, "")
	refresh(tab)
	tab.Wait(`document.querySelector("#agents .agent-lines").innerText.includes("running")`)
	tab.WaitText("builder-1 is assigned to beta.")
	tab.Find("button", "Undo").Click()
	tab.WaitText("builder-1 is unassigned.")
	if n := browsertest.Eval[int](tab, `document.querySelectorAll(".said").length`); n != 1 {
		t.Errorf("%d results are shown", n)
	}
	tab.Find("button", "Dismiss").Click()
	tab.Wait(`!document.querySelector(".said")`)
}

// TestResultsAreWhereTheEyeIs acts far down on a long page.
func TestResultsAreWhereTheEyeIs(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	for i := range 20 {
		s.add(fmt.Sprintf("project-%02d", i), board("1_backlog:"))
	}
	tab := browsertest.Open(t)
	tab.Size(1280, 400)
	tab.Goto(s.URL + "/projects")
	seen := func(text string) {
		t.Helper()
		tab.WaitText(text)
		tab.Wait(`(box => box.top >= 0 && box.bottom <= innerHeight && scrollY > 200)(document.querySelector(".said").getBoundingClientRect())`)
	}
	press(tab, tab.Find("button", "Actions for project-15"), kb.Enter)
	press(tab, tab.Find("button", "Make active"), kb.Enter)
	seen("project-15 is the active project.")
	tab.Wait(`document.activeElement.textContent === "project-15"`) // its button is gone, its row is not
	press(tab, tab.Find("button", "Actions for project-14"), kb.Enter)
	press(tab, tab.Find("button", "Remove"), kb.Enter)
	tab.Wait(`document.activeElement.textContent === "Cancel"`)
	tab.Keys(kb.Tab + kb.Enter)
	seen("project-14 is removed.")
	tab.Wait(`document.activeElement.id === "notice"`)
	tab.Keys(kb.Tab)
	tab.Wait(`document.activeElement.textContent === "Undo"`)

	tab.Find("textbox", "URL").Type("http://127.0.0.1:3001")
	tab.Keys(kb.Tab + "project-01" + kb.Enter)
	tab.WaitText("Project 'project-01' already exists.")
	tab.Wait(`document.activeElement.id === "name"`) // the field to correct
	tab.Complaints()
}

// TestAnActionKeepsFocusThoughARefreshOvertakesItsAnswer: the refresh has taken the focused button away already.
func TestAnActionKeepsFocusThoughARefreshOvertakesItsAnswer(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog:"))
	s.add("beta", board("1_backlog:"))
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/")
	button := tab.All("button", "Make active")[0]
	browsertest.Eval[bool](tab, `(send => {
		XMLHttpRequest.prototype.send = function (...body) {
			const show = this.onload
			if (body[0]) this.onload = () => { window.showAnswer = () => show.call(this) }
			send.apply(this, body)
		}
		return true
	})(XMLHttpRequest.prototype.send)`)
	press(tab, button, kb.Enter)
	tab.Wait(`window.showAnswer`)
	browsertest.Eval[bool](tab, `htmx.trigger("[data-live]", "refresh")`)
	tab.Wait(`document.activeElement === document.body`)
	browsertest.Eval[bool](tab, `(showAnswer(), true)`)
	tab.WaitText("is the active project.")
	tab.Wait(`["alpha", "beta"].includes(document.activeElement.textContent)`)
}

// TestNoPageScrollsSideways with names, reasons and labels that cannot be broken.
func TestNoPageScrollsSideways(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	word := strings.Repeat("x", 90)
	s.add(word, board("1_backlog:", "2_current: 1_story_"+word+"!"+word, "3_qa: 2_story_b?"+word, "4_merge: 3_story_c", "5_done:", "6_archived:"))
	s.add("beta", board("1_backlog:", "2_current: 14_story_log_in_with_a_passkey_or_a_token!"+strings.Repeat("why ", 80), "3_qa: 12_story_b", "4_merge: 9_story_c", "5_done:"))
	s.add("gamma", nil)
	s.Record(word, fmt.Sprintf(`{"type":"merge_failure","story_id":"1_story_%s","story_name":%q,"reason":%q,"timestamp_ms":%d}`, word, word, word, time.Now().UnixMilli()))
	s.says(s.join(word), domain.AgentFailed, word)
	s.join("builder-1")
	tab := browsertest.Open(t)
	for _, path := range []string{"/", "/projects", "/projects/" + word, "/agents", "/events"} {
		tab.Goto(s.URL + path)
		tab.Wait(`document.querySelector("h1")`)
		for _, width := range []int64{360, 720, 920, 1280} {
			tab.Size(width, 800)
			beyond := browsertest.Eval[string](tab, `[...document.querySelectorAll("body *")].filter(e =>
				e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 &&
				!e.closest(".sr-only, thead, .truncate, .overflow-x-auto, .board")).map(e => e.tagName + " " + e.className).join("\n")`)
			if wide := browsertest.Eval[int](tab, `document.documentElement.scrollWidth`); wide > int(width) || beyond != "" {
				t.Errorf("%s at %d px is %d px wide: %s", path, width, wide, beyond)
			}
		}
	}
}

func TestAFormAfterTheSessionEndedAsksToLogIn(t *testing.T) {
	browsertest.Parallel(t)
	s := newWholeSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/login?next=/sign-in")
	tab.Find("textbox", "Token").Type(gatewaytest.AdminToken + kb.Enter)
	tab.Find("heading", "Sign in with a code")
	browsertest.Eval[int](tab, `fetch("/logout", {method: "POST"}).then(response => response.status)`)
	press(tab, tab.Find("button", "Switch"), kb.Enter)
	tab.Find("heading", "Log in")
	tab.Find("textbox", "Token").Type(gatewaytest.AdminToken + kb.Enter)
	tab.Find("heading", "Overview")
	tab.Complaints() // of the refusal
}

// TestNothingMovesWhenACardIsMoved: neither the page, which was scrolled, nor what is on it, when the result is said.
func TestNothingMovesWhenACardIsMoved(t *testing.T) {
	browsertest.Parallel(t)
	files := map[string]string{"3_qa/" + auditFile: "# Audit log\n"}
	for i := range 24 {
		files[fmt.Sprintf("1_backlog/%d_story_other.md", 10+i)] = "# Other\n"
	}
	s := newStorySite(t, true, files)
	tab := browsertest.Open(t)
	tab.Size(1280, 500)
	tab.Goto(s.URL + "/projects/webshop")
	const place = `[scrollY, Math.round(document.getElementById('story-29_story_other').getBoundingClientRect().top)].join()`
	drop := tab.Find("link", "30 Other").Drag(tab.Find("region", "Current 0"))
	tab.Wait(`document.querySelector('[data-stage="2_current"]').matches('.may.on')`)
	before := browsertest.Eval[string](tab, place)
	if strings.HasPrefix(before, "0,") {
		t.Fatal("the page is not scrolled")
	}
	drop()
	tab.WaitText("“Other”: Moved to Current.")
	tab.Wait(`(box => box.top >= 0 && box.bottom <= innerHeight)(document.querySelector(".said").getBoundingClientRect())`)
	if after := browsertest.Eval[string](tab, place); after != before {
		t.Errorf("scrolled to and at %s, before %s", after, before)
	}
}
