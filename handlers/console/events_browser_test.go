package console_test

import (
	"strings"
	"testing"
	"time"

	"switchyard/internal/browsertest"
)

// TestEventsAreCopiedAsMarkdown: each event that the page shows, also those that are folded, in the page's order; on
// plain HTTP, too, where there is no clipboard for scripts.
func TestEventsAreCopiedAsMarkdown(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	at := time.Now().UTC().Truncate(time.Minute).Add(-2 * time.Hour)
	for _, story := range []string{"1_story_one", "2_story_two", "3_story_three"} {
		s.move("alpha", story, "1_backlog", "2_current", at)
	}
	tab := browsertest.Open(t)
	tab.Zone("UTC")
	tab.Goto(s.URL + "/events")
	for _, clipboard := range []string{"", "Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true }), "} {
		browsertest.Eval[bool](tab, clipboard+`window.copied = '', document.addEventListener('copy', () => { window.copied = getSelection().toString() }), `+
			`navigator.clipboard && (navigator.clipboard.writeText = async (text) => { window.copied = text }), true`)
		tab.Find("button", "Copy").Click()
		tab.Wait(`window.copied.includes('story one')`)
		var want []string
		for _, name := range []string{"3 3 story three", "2 2 story two", "1 1 story one"} {
			want = append(want, "- "+at.Format("2006-01-02 15:04")+" "+name+": Backlog → Current (alpha)")
		}
		if got := strings.TrimSpace(browsertest.Eval[string](tab, `window.copied`)); got != strings.Join(want, "\n") {
			t.Errorf("copied\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
		tab.WaitText("Copied")
		tab.Wait(`[...document.querySelectorAll('button')].some(b => b.textContent === 'Copy')`)
	}
	tab.Wait(`document.getElementById('copied').value.includes('story two')`)
}

// TestWindowsOfTimeGoByTheReadersClock: the presets lead to the reader's day and night, and what the fields say is a time
// of the reader's.
func TestWindowsOfTimeGoByTheReadersClock(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog:"))
	tab := browsertest.Open(t)
	tab.Zone("Asia/Tokyo")
	tab.Goto(s.URL + "/events")
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().In(tokyo)
	night := time.Date(now.Year(), now.Month(), now.Day()-1, 22, 0, 0, 0, tokyo)
	s.move("alpha", "1_story_night", "1_backlog", "2_current", night)
	s.move("alpha", "2_story_evening", "1_backlog", "2_current", night.Add(-time.Millisecond))
	tab.Find("link", "Last night").Click()
	tab.Wait(`location.search.includes('from=') && document.querySelector('#events')?.innerText.includes('1 story night')`)
	if text := browsertest.Eval[string](tab, `document.querySelector('#events').innerText`); strings.Contains(text, "evening") {
		t.Errorf("last night was\n%s", text)
	}
	if got, want := browsertest.Eval[string](tab, `document.getElementById('from').value`), night.Format("2006-01-02T15:04"); got != want {
		t.Errorf("from %s, want %s", got, want)
	}
	tab.Wait(`document.querySelector('[data-preset="night"]').getAttribute('aria-current') === 'true'`)

	// What happened while nobody looked: the next page is that of a new visit, a minute after the last one.
	browsertest.Eval[bool](tab, `addEventListener('pagehide', () => { localStorage.setItem('left', Date.now() - 60000), sessionStorage.clear() }), true`)
	s.move("alpha", "3_story_away", "1_backlog", "2_current", time.Now().Add(-30*time.Second))
	s.move("alpha", "4_story_before", "1_backlog", "2_current", time.Now().Add(-90*time.Second))
	tab.Goto(s.URL + "/events")
	tab.Find("link", "Since I was last here").Click()
	tab.Wait(`location.search.includes('from=') && document.querySelector('#events')?.innerText.includes('3 story away')`)
	if text := browsertest.Eval[string](tab, `document.querySelector('#events').innerText`); strings.Contains(text, "before") {
		t.Errorf("since the last visit:\n%s", text)
	}
}

// TestEventsAreLiveAsAWhole: what is counted above the list and beside it is as new as the list, and older events that
// were loaded stay.
func TestEventsAreLiveAsAWhole(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	s.moveMany("alpha", 120, time.Now().Add(-time.Minute))
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/events")
	tab.WaitText("120 events in 1 project.")
	tab.Find("link", "Load older").Click()
	tab.Wait(`document.getElementById('event-1')`)
	s.moveMany("beta", 3, time.Now())
	tab.WaitText("123 events in 2 projects.")
	for _, holds := range []string{
		`document.querySelector('.event-window a b').textContent === '123'`,
		`[...document.querySelectorAll('#hours-table td')].reduce((sum, td) => sum + Number(td.textContent), 0) === 123`,
		`document.querySelector('[aria-labelledby="by-project"]').textContent.includes('beta')`,
		`document.getElementById('event-123') && document.getElementById('event-1')`,
	} {
		tab.Wait(holds)
	}
}
