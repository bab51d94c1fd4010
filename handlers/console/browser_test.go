package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
	"switchyard/internal/waittest"
)

// refresh makes the page refresh at once, as it does when its tab becomes visible.
func refresh(tab *browsertest.Tab) {
	tab.Helper()
	browsertest.Eval[bool](tab, `document.dispatchEvent(new Event('visibilitychange'))`)
}

func TestBrowserOverviewLivesAndLeavesTheReaderAlone(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	tab := browsertest.Open(t)
	tab.Size(1280, 400)
	tab.Goto(s.URL + "/")
	tab.Find("heading", "Overview")
	tab.Wait(`document.title === '(3) Overview · Switchyard'`)

	// The text being typed, the scroll position and the focus stay while the page changes.
	browsertest.Eval[bool](tab, "window.mark = true")
	tab.Find("searchbox", "Filter projects").Type("alp")
	tab.Wait(`document.querySelectorAll('.grid-table tbody tr').length === 1`)
	tab.Wait(`location.search === '?q=alp'`)
	tab.Keys("ha")
	browsertest.Eval[bool](tab, "scrollTo(0, 60), true")
	s.boards.set("alpha", board("1_backlog:", "2_current: 14_story_login", "3_qa: 99_story_just_arrived", "5_done:"))
	tab.WaitText("Just arrived")
	tab.Wait(`document.title === '(2) Overview · Switchyard'`)
	if got := browsertest.Eval[string](tab, `document.activeElement.id + ' ' + document.activeElement.value`); got != "filter alpha" {
		t.Errorf("focus and text: %q", got)
	}
	if y := browsertest.Eval[float64](tab, "scrollY"); y != 60 {
		t.Errorf("the page has scrolled to %v", y)
	}
	if !browsertest.Eval[bool](tab, "window.mark === true") {
		t.Error("the page was loaded again")
	}
}

func TestBrowserActionsByMouse(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/")
	tab.Find("button", "Make active").Click()
	tab.WaitText("beta is the active project.")
	tab.Find("button", "Undo").Click()
	tab.WaitText("alpha is the active project.")

	tab.Find("link", "Projects").Click()
	tab.Find("heading", "Projects")
	tab.Find("button", "Actions for alpha").Click()
	tab.Find("button", "Remove").Click()
	tab.Find("heading", "Remove alpha?")
	tab.Find("button", "Cancel").Click()
	tab.Wait(`document.querySelectorAll(':popover-open').length === 1`)
	tab.Find("button", "Remove").Click()
	tab.Find("heading", "Remove alpha?")
	buttons := tab.All("button", "Remove")
	buttons[1].Click()
	tab.WaitText("alpha is removed.")
	if _, found := s.Projects.Registry().Find("alpha"); found {
		t.Error("alpha is still registered")
	}
	tab.Find("button", "Undo").Click()
	tab.WaitText("alpha is back.")
	if r := s.Projects.Registry(); r.Active != "alpha" {
		t.Errorf("active is %q", r.Active)
	}
}

// TestBrowserKeepsWhatIsBeingClicked: a refresh that arrives between the two halves of a click waits until it is done.
func TestBrowserKeepsWhatIsBeingClicked(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/")
	tab.Find("heading", "Overview")
	browsertest.Eval[bool](tab, `window.news = 0, document.addEventListener('htmx:afterRequest', ({ detail }) => {
		if (detail.xhr.status === 200) window.news++
	}), true`)
	links := tab.All("link", "")
	wagon := links[slices.IndexFunc(links, func(link browsertest.Thing) bool {
		return link.Call(`function() { return this.matches('.wagon[href$="login"]') }`) == "true"
	})]
	wagon.ClickAround(func() {
		s.boards.set("alpha", board("1_backlog:", "2_current: 99_story_just_arrived", "3_qa: 14_story_login", "5_done:"))
		refresh(tab)
		tab.Wait(`window.news > 0`)
	})
	tab.Wait(`location.pathname === '/projects/alpha/stories/14_story_login'`)
}

func TestBrowserAddsAProjectByKeyboard(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/projects")
	tab.Find("textbox", "URL").Type("nonsense")
	tab.Keys(kb.Tab + "delta" + kb.Enter)
	tab.WaitText("Must begin with http:// or https://.")
	tab.Wait(`document.querySelector('#name').value + ' ' + document.activeElement.id + ' ' + location.pathname === 'delta url /projects'`)
	// The browser logs each error status, from another process than the page's.
	waittest.Until(t, "the refusal's error status", func() bool { return len(tab.Complaints()) > 0 })
	tab.Find("textbox", "URL").Type("http://127.0.0.1:3009")
	tab.Keys(kb.Enter)
	tab.WaitText("delta is added.")
	tab.Find("link", "delta")
	if got := browsertest.Eval[string](tab, `document.querySelector('#name').value + document.querySelector('#url').value`); got != "" {
		t.Errorf("the form still holds %q", got)
	}
}

func TestBrowserKeys(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/")
	tab.Find("heading", "Overview")
	tab.Keys(kb.Tab) // the first element is visible, too
	tab.Wait(`document.activeElement.textContent === 'Skip to content' && (box =>
		document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2))(document.activeElement.getBoundingClientRect()) === document.activeElement`)
	for key, field := range map[string]string{"/": "#palette [role=combobox]", "f": "#filter"} {
		tab.Keys(key)
		tab.Wait(`document.activeElement.matches('` + field + `')`)
		tab.Keys("gp" + kb.Escape + kb.Escape) // clears, then leaves
		tab.Wait(`!document.activeElement.matches('` + field + `')`)
	}
	for _, to := range [][2]string{{"gp", "Projects"}, {"ge", "Events"}, {"go", "Overview"}} {
		tab.KeysTo(to[0], to[1])
	}
	tab.Keys("?")
	tab.Wait(`document.querySelector('#keys:popover-open')`)
	tab.Find("checkbox", "Use these keys").Click()
	tab.Keys(kb.Escape)
	tab.Wait(`!document.querySelector('#keys:popover-open')`)
	browsertest.Eval[bool](tab, "document.activeElement.blur(), true")
	tab.Keys("?")
	if browsertest.Eval[bool](tab, `Boolean(document.querySelector('#keys:popover-open'))`) {
		t.Error("the keys act though they are turned off")
	}
	// The first element that Tab reaches is the link past the navigation.
	tab.Goto(s.URL + "/")
	tab.Keys(kb.Tab + kb.Enter)
	tab.Wait(`location.hash === '#main' && document.activeElement.id === 'main'`)
}

func TestBrowserEventsComeWhileOneReads(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog:"))
	now := time.Now()
	s.moveMany("alpha", 150, now)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/events")
	tab.Find("link", "Load older").Click()
	tab.Wait(`document.querySelectorAll('li[id^=event-]').length === 150`)
	if headings := browsertest.Eval[int](tab, `document.querySelectorAll('.events h2').length`); headings != 1 {
		t.Errorf("%d headings for one day", headings)
	}
	tab.Wait(`document.querySelector('.events h2').textContent.endsWith('150 events')`)

	s.move("alpha", "900_story", "2_current", "3_qa", now)
	tab.Wait(`document.querySelector('#event-151.fresh')`)
	if n := browsertest.Eval[int](tab, `document.querySelectorAll('li[id^=event-]').length`); n != 151 {
		t.Errorf("%d events", n)
	}

	tab.Find("button", "Pause").Click()
	tab.WaitText("paused")
	s.move("alpha", "901_story", "2_current", "3_qa", now)
	refresh(tab)
	tab.Find("button", "Resume").Click()
	tab.WaitText("901")
	tab.Find("searchbox", "Text").Type("900")
	tab.Wait(`location.search.includes('q=900') && document.querySelectorAll('li[id^=event-]').length === 1`)
	if got := browsertest.Eval[string](tab, `document.activeElement.value`); got != "900" {
		t.Errorf("the filter holds %q", got)
	}
}

func TestBrowserFollowsTheActiveProject(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/events")
	tab.Find("heading", "Events")
	switchTo := func(name string) {
		t.Helper()
		if err := s.Projects.Switch(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		refresh(tab)
	}
	shows := func(name string) {
		t.Helper()
		tab.Wait(fmt.Sprintf(`document.getElementById('active-project').value === %q`, name))
	}
	shows("alpha")
	switchTo("beta")
	shows("beta")
	late := `ä/& "new"` // the header's list lacks it
	s.add(late, board("1_backlog:"))
	switchTo(late)
	shows(late)
	if _, err := s.Projects.Remove(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	refresh(tab)
	shows("")

	// What the reader has chosen but not sent stays.
	browsertest.Eval[bool](tab, `document.getElementById('active-project').value = 'gamma', true`)
	switchTo("beta")
	tab.Wait(`document.getElementById('active-project').dataset.active === 'beta'`)
	shows("gamma")
	tab.Find("button", "Switch").Click()
	tab.WaitText("gamma is the active project.")
	switchTo("alpha")
	shows("alpha")
}

func TestBrowserRestsWhileHidden(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/events")
	tab.Find("heading", "Events")
	browsertest.Eval[bool](tab, `Object.defineProperty(document, 'hidden', {value: true, configurable: true}), true`)
	s.move("alpha", "77_story_hidden", "2_current", "3_qa", time.Now())
	stopped := browsertest.Eval[bool](tab, `new Promise(resolve => {
		document.addEventListener('htmx:beforeRequest', event => setTimeout(() => resolve(event.defaultPrevented)))
	})`)
	if !stopped {
		t.Error("a hidden page has asked for news")
	}
	browsertest.Eval[bool](tab, `delete document.hidden, true`)
	refresh(tab)
	tab.WaitText("77")
}

func TestBrowserSaysThatTheGatewayIsLost(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	var lost atomic.Bool
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lost.Load() {
			panic(http.ErrAbortHandler)
		}
		s.Server.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	tab := browsertest.Open(t)
	tab.Goto(front.URL + "/")
	tab.Find("heading", "Overview")
	lost.Store(true)
	refresh(tab)
	tab.WaitText("The gateway does not answer.")
	tab.Find("button", "Make active").Click()
	tab.WaitText("The gateway did not answer. Try again when it is back.")
	lost.Store(false)
	tab.Wait(`document.getElementById('lost').hidden`)
	for _, complaint := range tab.Complaints() {
		if !strings.Contains(complaint, "net::ERR_") && !strings.HasPrefix(complaint, "htmx:") {
			t.Error(complaint)
		}
	}
}

// TestBrowserShowsOnlyPagesOfTheGateway with a proxy in front of the gateway, and refusals in plain text.
func TestBrowserShowsOnlyPagesOfTheGateway(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	var instead atomic.Pointer[http.HandlerFunc]
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := instead.Load(); h != nil {
			(*h)(w, r)
			return
		}
		s.Server.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	tab := browsertest.Open(t)
	tab.Goto(front.URL + "/projects")
	answer := func(status int, media, body string, headers ...string) {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", media)
			for i := 0; i+1 < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		})
		instead.Store(&h)
	}
	tab.Find("textbox", "Name").Type("delta")
	tab.Find("textbox", "URL").Type("http://127.0.0.1:3009")
	for _, c := range []struct {
		status      int
		media, body string
	}{
		{http.StatusBadGateway, "text/html", "<h1>Bad gateway</h1>"},
		{http.StatusBadGateway, "text/plain", ""},
		{http.StatusOK, "text/html", "<h1>Log in to the proxy</h1>"},
	} {
		answer(c.status, c.media, c.body)
		refresh(tab)
		tab.WaitText("The gateway does not answer.")
		tab.Find("button", "Add project").Click()
		tab.Wait(`!document.querySelector(".htmx-request")`)
		instead.Store(nil)
		refresh(tab)
		tab.Wait(`document.getElementById('lost').hidden`)
		tab.Find("heading", "Projects")
		tab.Find("link", "alpha")
	}

	answer(http.StatusInternalServerError, "text/plain", "internal error, request 7", "X-Request-Id", "7")
	tab.Find("button", "Add project").Click()
	tab.WaitText("internal error, request 7")
	refresh(tab)
	instead.Store(nil)
	tab.Find("button", "Add project").Click()
	tab.Find("link", "delta")
	tab.Complaints() // the refusals
}

func TestBrowserWithoutScripts(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	tab := browsertest.Open(t)
	tab.Scripts(false)
	tab.Goto(s.URL + "/projects")
	tab.Find("textbox", "URL").Type("nonsense")
	tab.Keys(kb.Tab + "delta" + kb.Enter)
	tab.Find("alert", "")
	tab.Complaints() // the status of the refusal
	tab.Find("textbox", "URL").Type("http://127.0.0.1:3009")
	tab.Find("button", "Add project").Click()
	tab.Find("button", "Actions for delta").Click()
	tab.Find("button", "Make active").Click()
	tab.WaitText("delta is the active project.")
	tab.Find("button", "Undo").Click()
	tab.WaitText("alpha is the active project.")
	tab.Find("button", "Actions for alpha").Click()
	tab.Find("button", "Remove").Click()
	tab.Find("heading", "Remove alpha?")
	tab.All("button", "Remove")[1].Click()
	tab.WaitText("alpha is removed.")
	if _, found := s.Projects.Registry().Find("alpha"); found {
		t.Error("alpha is still registered")
	}
	tab.Goto(s.URL + "/")
	tab.Find("searchbox", "Filter projects").Type("bet")
	tab.Keys(kb.Enter)
	tab.Wait(`location.search === '?q=bet'`)
	tab.Wait(`document.querySelectorAll('.grid-table tbody tr').length === 1`)
	tab.Find("button", "Menu").Click()
	tab.Find("button", "Dark").Click()
	tab.Wait(`document.documentElement.dataset.theme === 'dark' && location.search === '?q=bet'`)
	if dark := s.Get("/"); strings.Contains(dark.Text, "data-theme") {
		t.Error("one reader's theme is another's")
	}
}
