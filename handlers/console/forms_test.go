package console_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
)

func TestASecondClickDoesNothingWhileTheFirstIsUnderWay(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/agents")
	browsertest.Eval[bool](tab, `(() => { const b = [...document.querySelectorAll('button')].find(b => b.textContent === 'Add agent'); b.click(); b.click(); b.click(); return true })()`)
	tab.WaitText("Waiting for the agent")
	tokens, err := s.Agents.UnusedJoinTokens(t.Context())
	if err != nil || len(tokens) != 1 {
		t.Errorf("%d tokens, %v", len(tokens), err)
	}
	tab.Find("button", "Add agent").Click() // the next click counts again
	tab.Wait(`document.querySelectorAll('li[id^=token-]').length === 2`)

	posts := 0
	tab.Goto(s.URL + "/projects")
	tab.Find("button", "Look").Click() // at the address that is filled in, which nothing answers here
	tab.Find("textbox", "Name").Type("alpha")
	browsertest.Eval[bool](tab, `(window.sent = 0, document.addEventListener('htmx:beforeSend', (e) => { if (e.detail.elt.id === 'add-project') window.sent++ }), true)`)
	browsertest.Eval[bool](tab, `(() => { const f = document.getElementById('add-project'); f.requestSubmit(); f.requestSubmit(); return true })()`)
	tab.WaitText("alpha is added.")
	if posts = browsertest.Eval[int](tab, "window.sent"); posts != 1 {
		t.Errorf("the form was sent %d times", posts)
	}
}

func TestEscapeClearsTheFilter(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/?q=alph")
	tab.Wait(`!document.getElementById('overview').textContent.includes('gamma') || document.querySelectorAll('.grid-table tbody tr').length === 1`)
	press(tab, tab.Find("searchbox", "Filter projects"), kb.Escape)
	tab.Wait(`document.querySelectorAll('.grid-table tbody tr').length === 3`)
	tab.Wait(`!location.search.includes('alph')`)
	tab.Keys(kb.Escape)
	tab.Wait(`document.activeElement === document.body`)

	tab.Goto(s.URL + "/events?q=nothing")
	tab.WaitText("No matching events.")
	press(tab, tab.Find("searchbox", "Text"), kb.Escape)
	tab.WaitText("Backlog → Current")
}
