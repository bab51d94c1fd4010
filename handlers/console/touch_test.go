package console_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
)

// tooSmall lists controls that a thumb would miss: those less than 44 px high, or less than 24 px wide. Links within a text
// are as high as the text.
const tooSmall = `(() => {
	if (e.closest('.sr-only, svg, p:not(:has(> .link:only-child)), dd, .markdown, [popover], .tokens') || getComputedStyle(e).pointerEvents === 'none') return false
	const target = e.matches('[type=checkbox], [type=radio]') ? e.labels[0] : e
	target.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'})
	const box = target.getClientRects()[0]
	const x = box.left + Math.min(box.width, innerWidth - box.left) / 2, y = box.top + box.height / 2
	const reach = (dx, dy) => {
		for (let n = 0; n < 50; n++) if (!target.contains(document.elementFromPoint(x + n * dx, y + n * dy))) return n
		return 50
	}
	return reach(0, -1) + reach(0, 1) < 44 || reach(-1, 0) + reach(1, 0) < 24
})()`

// TestAPhoneIsOperatedByTouch: everything that can be done with a mouse, with taps alone.
func TestAPhoneIsOperatedByTouch(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	agent := s.join("builder-1")
	s.moveMany("alpha", 120, time.Now())
	tab := browsertest.Open(t)
	tab.Phone()
	tap := func(role, name string) {
		t.Helper()
		tab.Find(role, name).Tap()
	}

	tab.Goto(s.URL + "/")
	tap("button", "Make active")
	tab.WaitText("beta is the active project.")
	tap("button", "Undo")
	tab.WaitText("alpha is the active project.")
	tap("button", "Acknowledge")
	tap("button", "For 4 hours")
	tab.WaitText("Acknowledged")
	tap("button", "Dismiss")
	tab.Wait(`!document.querySelector('.said')`)
	tap("link", "Troubled")
	tab.Wait(`location.search === '?show=troubled'`)
	tap("button", "Menu")
	tap("button", "Dark")
	tab.Wait(`document.documentElement.dataset.theme === 'dark'`)
	tap("link", "Find")
	tab.Find("combobox", "Find or do something").Type("login")
	tab.Wait(`document.querySelector('#palette-list [data-for="login"]')`) // not what was found for its first letters
	tap("option", "Open 14 Login alpha · Current")
	tab.Find("heading", "Login")

	tap("link", "Projects")
	tab.Find("heading", "Projects")
	tap("button", "Actions for beta")
	tap("button", "Remove")
	tab.Find("heading", "Remove beta?")
	tap("button", "Cancel")
	tab.Wait(`document.querySelectorAll(':popover-open').length === 1`)
	tap("button", "Remove")
	tab.Find("heading", "Remove beta?")
	tab.All("button", "Remove")[1].Tap()
	tab.WaitText("beta is removed.")
	tap("link", "alpha")
	tab.Find("heading", "alpha")
	tap("link", "9 Search")
	tab.Find("heading", "Search")

	which := domain.Question{Kind: domain.QuestionChoice, Prompt: "Which?", Options: []string{"The bank that we have", "The cheapest one"}}
	who := domain.Actor{Who: agent.Label, Account: "agent " + agent.ID, AgentID: agent.ID}
	if _, err := s.Questions.Ask(domain.WithActor(t.Context(), &who), which, time.Hour); err != nil {
		t.Fatal(err)
	}
	tap("link", "Agents")
	tab.Find("heading", "Agents")
	tab.Find("button", "The bank that we have")
	wantNone(t, tab, "has buttons that cut their text", named("main .btn", "e.scrollWidth > e.clientWidth"))
	tap("button", "Actions for "+agent.Label)
	tap("button", "Rename")
	tab.Find("textbox", "Label").Type("painter")
	tap("button", "Save")
	tab.WaitText("The agent is now called painter.")
	tab.Find("combobox", "Project of painter").Call(`function() { // the list to choose from is the phone's own
		this.focus()
		this.value = "gamma"
		this.dispatchEvent(new Event("change", {bubbles: true}))
	}`)
	tab.WaitText("painter is assigned to gamma.")
	s.wantAssigned(agent, "gamma")
	tap("button", "Add agent")
	tab.WaitText("Waiting for the agent")
	tap("button", "Close")
	tab.Wait(`!document.getElementById('join')`)

	tap("link", "Events")
	tab.Find("heading", "Events")
	tap("link", "Load older")
	tab.Wait(`document.querySelectorAll('li[id^=event-]').length >= 120`)
	tap("button", "Pause")
	tab.WaitText("paused")
}

func TestAStoryIsChangedByTouch(t *testing.T) {
	browsertest.Parallel(t)
	s := newStorySite(t, true, map[string]string{"3_qa/2_story_audit.md": "# Audit log\n"})
	tab := browsertest.Open(t)
	tab.Phone()
	tab.Goto(s.URL + auditPage)
	tab.Find("button", "Move to Merge").Tap()
	tab.WaitText("Moved to Merge.")
	tab.Find("button", "Undo").Tap()
	tab.WaitText("Moved to QA.")
	tab.Find("button", "Actions for Audit log").Tap()
	tab.Find("button", "Block").Tap()
	tab.Find("textbox", "Reason").Type("waiting for a key")
	tab.All("button", "Block")[1].Tap()
	tab.WaitText("Blocked for")
	tab.Find("button", "Unblock").Tap()
	tab.WaitText("No longer blocked.")
}

// TestAPhoneShowsTheFirstStoriesOfAStage, those in trouble before the others; a wide window shows all of them.
func TestAPhoneShowsTheFirstStoriesOfAStage(t *testing.T) {
	browsertest.Parallel(t)
	files := map[string]string{"2_current/8_story.md": "---\nname: Eight\nblocked: a key\n---\n"}
	for i := range 7 {
		files[fmt.Sprintf("2_current/%d_story.md", i+1)] = "# Early\n"
	}
	s := newStorySite(t, true, files)
	tab := browsertest.Open(t)
	const shown = `[...document.querySelectorAll('.stage .card')].filter(e => e.checkVisibility()).length === `
	tab.Goto(s.URL + "/projects/webshop")
	tab.Wait(shown + "8")
	wantNone(t, tab, "has cards that are narrower than others",
		named(".stage .card a", "e.offsetWidth < 0.8 * document.querySelector('.stage .card a').offsetWidth"))
	tab.Phone()
	tab.Goto(s.URL + "/projects/webshop")
	tab.Wait(shown + "5 && document.querySelector('.stage .card').textContent.includes('Eight')")
	tab.Accessible()
	browsertest.Eval[any](tab, `document.querySelector(".phone-fold > summary").click()`)
	tab.Wait(shown + "8")
}

// TestCommandsOnAPhoneAreCopiedAsTheyAre: they are in one line, since the browser would break
// options after the dashes, and what is copied is the command alone.
func TestCommandsOnAPhoneAreCopiedAsTheyAre(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	tab := browsertest.Open(t)
	tab.Phone()
	for _, c := range []struct{ path, control, want string }{
		{"/", "", `^switchyard up ~/src/my-project$`},
		{"/agents", "Add agent", `^SWITCHYARD_TOKEN=swj_\w+ switchyard agent --gateway http://127\.0\.0\.1:\d+$`},
	} {
		tab.Goto(s.URL + c.path)
		if c.control != "" {
			tab.Find("button", c.control).Tap()
		}
		tab.Wait(fmt.Sprintf(`new RegExp(%q).test(document.querySelector('code:has(+ [data-copy])')?.textContent)`, c.want))
		wantNone(t, tab, "breaks a command", `[...document.querySelectorAll('code:has(+ [data-copy])')]
			.filter((e) => e.getBoundingClientRect().height >= (e.textContent.split('\n').length + 1) * parseFloat(getComputedStyle(e).lineHeight)).map((e) => e.textContent)`)
		browsertest.Eval[bool](tab, `(navigator.clipboard.writeText = async (text) => { window.copied = text }, true)`)
		tab.Find("button", "Copy").Tap()
		tab.WaitText("Copied")
		if got := browsertest.Eval[string](tab, "window.copied"); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s: copied %q", c.path, got)
		}
	}
}

// besideAnotherLine lists boxes whose middle is not that of the first line of their label's text.
const besideAnotherLine = `(() => {
	const texts = document.createTreeWalker(e.closest('label'), NodeFilter.SHOW_TEXT, text => text.data.trim() ? 1 : 2), line = document.createRange()
	line.selectNodeContents(texts.nextNode())
	const middle = box => (box.top + box.bottom) / 2
	return Math.abs(middle(e.getBoundingClientRect()) - middle([...line.getClientRects()].find(box => box.width > 0))) > 4
})()`

// TestBoxesOnAPhoneStandAtTheFirstLineOfTheirText where that has several.
func TestBoxesOnAPhoneStandAtTheFirstLineOfTheirText(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	s.add(strings.Repeat("long-name-", 8)+"alpha", board("1_backlog: 14_story_login"))
	s.asks(withOptions(`{"question":"Which?","multiSelect":true,"options":[{"label":"` + strings.Repeat("some words ", 9) + `"},{"label":"None"}]}`))
	tab := browsertest.Open(t)
	tab.Phone()
	const boxes = `label > :is([type=checkbox], [type=radio]):not([aria-label])`
	for _, path := range []string{"/questions", "/notifications?kind=mail", "/access"} {
		tab.Goto(s.URL + path)
		tab.Wait(`document.querySelector("` + boxes + `")`)
		tab.Wait(`[...document.querySelectorAll("label:has(> ` + "[type=checkbox], > [type=radio]" + `)")].some(e => {
			const text = document.createRange()
			text.selectNodeContents(e)
			return text.getBoundingClientRect().height > 36 // two lines
		})`)
		wantNone(t, tab, "has boxes beside another line", named(boxes, besideAnotherLine))
	}
}
