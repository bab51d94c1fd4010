package console_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
)

// operable are the visible controls on a page.
const operable = `[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, summary, [tabindex="0"]')]
	.filter(e => !e.disabled && e.tabIndex >= 0 && e.checkVisibility({visibilityProperty: true}))`

// partsOfADate is how many times more than once Tab stops within a field for a date and time.
const partsOfADate = 6

// TestTabReachesEverything walks through each page by Tab: every control is reached, in the order of the page, and shows that it
// has the focus.
func TestTabReachesEverything(t *testing.T) {
	browsertest.Parallel(t)
	s := newWholeSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/login")
	tab.Find("textbox", "Token").Type(gatewaytest.AdminToken + kb.Enter)
	tab.Find("heading", "Overview")
	for _, path := range []string{"/", "/projects", "/projects/alpha", "/projects/alpha/stories/12_story_pay", "/search?q=story", "/agents", "/events", "/bot-config", "/sign-in"} {
		var things int
		var reached []string
		for changed := true; changed; { // the page refreshes itself, and a control may come or go meanwhile
			tab.Goto(s.URL + path)
			things = browsertest.Eval[int](tab, `(window.things = `+operable+`).length`)
			browsertest.Eval[bool](tab, `(window.reached = [], addEventListener('focusin', ({ target }) => {
				reached.push(things.indexOf(target) + (getComputedStyle(target).outlineStyle === 'none' ? ' without a visible focus' : ''))
			}), true)`)
			dates := browsertest.Eval[int](tab, `document.querySelectorAll('[type=datetime-local]').length`)
			tab.Keys(strings.Repeat(kb.Tab, things+partsOfADate*dates))
			reached = browsertest.Eval[[]string](tab, `reached.map(String)`)
			changed = browsertest.Eval[bool](tab, `(now => now.length !== things.length || now.some((e, i) => e !== things[i]))(`+operable+`)`)
		}
		if things < 15 {
			t.Errorf("%s has %d things that do something", path, things)
		}
		for i := range things {
			if i >= len(reached) || reached[i] != fmt.Sprint(i) {
				t.Errorf("%s: Tab does not lead to %s: %q", path, browsertest.Eval[string](tab, fmt.Sprintf(`things[%d].outerHTML`, i)), reached)
				break
			}
		}
	}
	tab.Goto(s.URL + "/")
	tab.KeysTo("gb", "Bot configuration")
}

// press focuses a control and presses a key on it.
func press(tab *browsertest.Tab, thing browsertest.Thing, key string) {
	tab.Helper()
	thing.Call(`function() { this.focus() }`)
	tab.Keys(key)
}

func TestActionsByKeyboard(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog:", "2_current: 14_story_login", "5_done:"))
	s.add("beta", board("1_backlog:", "5_done:"))
	if err := s.Projects.Switch(t.Context(), "alpha"); err != nil {
		t.Fatal(err)
	}
	agent := s.join("builder-1")
	s.moveMany("alpha", 150, time.Now())
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/")
	press(tab, tab.Find("button", "Make active"), kb.Enter)
	tab.WaitText("beta is the active project.")
	press(tab, tab.Find("button", "Undo"), " ")
	tab.WaitText("alpha is the active project.")
	press(tab, tab.Find("combobox", "Active"), kb.ArrowDown+kb.Tab+kb.Enter) // to the button beside it
	tab.WaitText("beta is the active project.")
	press(tab, tab.Find("button", "Menu"), kb.Enter)
	press(tab, tab.Find("button", "Dark"), " ")
	tab.Wait(`document.documentElement.dataset.theme === 'dark'`)

	tab.KeysTo("gp", "Projects")
	press(tab, tab.Find("button", "Actions for beta"), kb.Enter)
	press(tab, tab.Find("button", "Remove"), kb.Enter) // asks first, with Cancel in focus
	tab.Find("heading", "Remove beta?")
	tab.Wait(`document.activeElement.textContent === 'Cancel'`)
	tab.Keys(kb.Escape)
	tab.Wait(`document.querySelectorAll(':popover-open').length === 1`)
	tab.Keys(kb.Enter) // the focus is back on the button
	tab.Wait(`document.activeElement.textContent === 'Cancel'`)
	tab.Keys(kb.Tab + kb.Enter)
	tab.WaitText("beta is removed.")
	press(tab, tab.Find("button", "Undo"), kb.Enter)
	tab.WaitText("beta is back.")
	press(tab, tab.Find("link", "alpha"), kb.Enter)
	tab.Find("heading", "alpha")
	press(tab, tab.Find("button", "Actions for alpha"), kb.Enter)
	press(tab, tab.Find("link", "Settings"), kb.Enter)
	tab.Wait(`!document.querySelector(':popover-open')`)
	tab.Find("textbox", "URL").Type("http://127.0.0.1:3999" + kb.Enter)
	tab.WaitText("The settings are saved.")

	tab.Keys(kb.Escape) // the first Escape leaves the field
	tab.KeysTo("ga", "Agents")
	press(tab, tab.Find("combobox", "Project of builder-1"), "b")
	tab.WaitText("builder-1 is assigned to beta.")
	s.wantAssigned(agent, "beta")
	press(tab, tab.Find("button", "Add agent"), kb.Enter)
	tab.WaitText("Waiting for the agent")

	tab.Goto(s.URL + "/events")
	press(tab, tab.Find("link", "Load older"), kb.Enter)
	tab.Wait(`document.querySelectorAll('li[id^=event-]').length === 150`)
	press(tab, tab.Find("button", "Pause"), " ")
	tab.WaitText("paused")
	press(tab, tab.Find("combobox", "Project"), "b") // applies at once
	tab.Wait(`location.search.includes('project=beta')`)
	tab.WaitText("No matching events.")

	tab.Keys(kb.Escape + "?")
	tab.Wait(`document.querySelector('#keys:popover-open')`)
	tab.Keys(kb.Escape)
	tab.KeysTo("go", "Overview")
}

// TestArrowKeysWalkTheMenusOfRows on each page that has some. Escape closes one and gives the focus back to its button.
func TestArrowKeysWalkTheMenusOfRows(t *testing.T) {
	browsertest.Parallel(t)
	s := newWholeSite(t)
	gatewaytest.NamedToken(t, s.Service, "ci", domain.RoleViewer)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/login")
	tab.Find("textbox", "Token").Type(gatewaytest.AdminToken + kb.Enter)
	tab.Find("heading", "Overview")
	for _, menu := range []struct{ path, row, entries string }{
		{"/projects", "beta", "Make active, Edit address and token, Its agents, Its events, Its flow, Remove"},
		{"/agents", "builder-2", "Rename, Remove"},
		{"/waiting", "12", "Its project, Acknowledge"},
		{"/access", "ci", "Revoke"},
	} {
		tab.Goto(s.URL + menu.path)
		press(tab, tab.Find("button", "Actions for "+menu.row), kb.Enter)
		tab.Wait(`document.querySelector(':popover-open')`)
		want := strings.Split(menu.entries, ", ")
		first, last := want[0], want[len(want)-1]
		keys := slices.Repeat([]string{kb.ArrowDown}, len(want)+1)
		var reached []string
		for _, key := range append(keys, kb.ArrowUp, kb.Home, kb.End) {
			tab.Keys(key)
			reached = append(reached, browsertest.Eval[string](tab, `document.activeElement.innerText`))
		}
		if want = append(want, first, last, first, last); !slices.Equal(reached, want) {
			t.Errorf("%s: the keys lead to %q, want %q", menu.path, reached, want)
		}
		tab.Keys(kb.Escape)
		tab.Wait(`!document.querySelector(':popover-open') && document.activeElement.ariaLabel === 'Actions for ` + menu.row + `'`)
	}
}

func TestFocusStaysWhileThePageChanges(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	tab := browsertest.Open(t)
	tab.Media("prefers-reduced-motion", "reduce")
	tab.Goto(s.URL + "/projects/alpha")
	press(tab, tab.Find("button", "Actions for alpha"), kb.Enter)
	press(tab, tab.Find("button", "Remove"), kb.Enter)
	tab.Wait(`document.activeElement.textContent === 'Cancel'`)
	s.move("alpha", "99_story_new", "1_backlog", "2_current", time.Now())
	tab.WaitText("99 story new")
	if !browsertest.Eval[bool](tab, `document.activeElement.textContent === 'Cancel' && document.querySelector(':popover-open') !== null`) {
		t.Error("the question is gone")
	}
	moves := browsertest.Eval[string](tab, `getComputedStyle(document.querySelector('.fresh')).animationDuration`)
	if moves != "0.001s" {
		t.Errorf("to those who want no motion, what is new moves for %s", moves)
	}

	tab.Goto(s.URL + "/")
	press(tab, tab.All("button", "Make active")[0], "")
	s.boards.set("alpha", board("1_backlog:", "2_current: 98_story_newer", "5_done:"))
	s.boards.set("gamma", board("1_backlog:", "2_current: 97_story_there", "5_done:"))
	tab.WaitText("Newer")
	tab.WaitText("There")
	if at := browsertest.Eval[string](tab, `document.activeElement.ariaLabel + ' ' + document.activeElement.closest('tr')?.id`); at != "Make active project-beta" {
		t.Errorf("the focus has gone to %q", at)
	}
	tab.Find("button", "Make active").Click()
	tab.WaitText("beta is the active project.")
}

// TestEveryFormWithoutScripts sends the forms that other tests without scripts do not.
func TestEveryFormWithoutScripts(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog:"))
	s.add("beta", board("1_backlog:"))
	agent := s.join("builder-1")
	s.move("alpha", "1_story_one", "1_backlog", "2_current", time.Now())
	s.move("beta", "2_story_two", "1_backlog", "2_current", time.Now())
	tab := browsertest.Open(t)
	tab.Scripts(false)
	tab.Goto(s.URL + "/events")
	tab.Find("searchbox", "Text").Type("two")
	tab.Find("button", "Filter").Click()
	tab.Wait(`location.search.includes('q=two') && !document.body.innerText.includes('1_story_one')`)
	press(tab, tab.Find("combobox", "Active"), "b"+kb.Tab+kb.Enter)
	tab.WaitText("beta is the active project.")
	tab.Goto(s.URL + "/projects/beta#settings-title")
	tab.Find("textbox", "URL").Type("http://127.0.0.1:3999")
	tab.Find("button", "Save").Click()
	tab.WaitText("The settings are saved.")
	tab.Goto(s.URL + "/agents")
	press(tab, tab.Find("combobox", "Project of builder-1"), "b"+kb.Tab+kb.Enter)
	tab.WaitText("builder-1 is assigned to beta.")
	s.wantAssigned(agent, "beta")
	tab.Find("button", "Add agent").Click()
	tab.WaitText("switchyard agent --gateway")
	if text := browsertest.Eval[string](tab, "document.body.innerText"); strings.Contains(text, "live") {
		t.Error("the page says that it is live without scripts")
	}
}
