package console_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"switchyard/internal/browsertest"
)

// TestDaysOfEventsAreTheReaders: two events on the same day in one time zone are on different days in another.
func TestDaysOfEventsAreTheReaders(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog:"))
	noon := time.Now().UTC().Truncate(24 * time.Hour).Add(-10*24*time.Hour + 12*time.Hour)
	s.move("alpha", "1_story_morning", "1_backlog", "2_current", noon.Add(-2*time.Hour))
	s.move("alpha", "2_story_evening", "1_backlog", "2_current", noon.Add(2*time.Hour))
	tab := browsertest.Open(t)
	days := func() string {
		return browsertest.Eval[string](tab, `[...document.querySelectorAll('[data-days] :is(h2, h3, time)')].map(e => e.textContent).join(', ')`)
	}
	for _, path := range []string{"/", "/events"} {
		named := func(at time.Time, totals string) string {
			if path == "/" {
				totals = ""
			}
			return strings.TrimSpace(at.Format("Monday 2 January ") + totals)
		}
		for _, c := range []struct{ zone, want string }{
			{"UTC", named(noon, "2 events") + ", 14:00, 10:00"},
			{"Pacific/Kiritimati", named(noon.Add(24*time.Hour), "2 events") + ", 04:00, 00:00"},                                // UTC+14
			{"Asia/Tokyo", named(noon, "2 events") + ", 23:00, 19:00"},                                                          // UTC+9
			{"Pacific/Pago_Pago", named(noon, "1 event") + ", 03:00, " + named(noon.Add(-24*time.Hour), "1 event") + ", 23:00"}, // UTC-11
		} {
			tab.Zone(c.zone)
			tab.Goto(s.URL + path)
			tab.WaitText("1 story morning")
			if got := days(); got != c.want {
				t.Errorf("%s in %s: %q, want %q", path, c.zone, got, c.want)
			}
		}
		// Later events are listed under the same days.
		if path == "/" {
			continue
		}
		s.move("alpha", "3_story_new", "1_backlog", "2_current", noon.Add(3*time.Hour))
		refresh(tab)
		tab.WaitText("3 story new")
		if got, want := days(), named(noon, "2 events")+", 04:00, 03:00, "+named(noon.Add(-24*time.Hour), "1 event")+", 23:00"; got != want {
			t.Errorf("after an event came: %q, want %q", got, want)
		}
		tab.Wait(`document.querySelector('[data-days] time').title.includes('d ago, ')`)
	}
	tab.Scripts(false)
	tab.Goto(s.URL + "/events")
	zone, _ := time.Now().Zone()
	tab.WaitText("Days and times are in the time zone that this browser had last: ")
	tab.Goto(s.URL + "/projects/alpha")
	tab.WaitText("Days and times are in the gateway’s time zone: " + zone)
}

// TestScriptsWriteDatesLikeTheServer: "21 Sep", which en-GB would write as "21 Sept".
func TestScriptsWriteDatesLikeTheServer(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog:", "2_current: 1_story_login", "5_done:"))
	year := time.Now().UTC().Year() - 1
	s.move("alpha", "1_story_login", "1_backlog", "2_current", time.Date(year, time.September, 21, 14, 32, 5, 0, time.UTC))
	want := "21 Sep " + strconv.Itoa(year) + " 14:32"
	tab := browsertest.Open(t)
	tab.Zone("UTC")
	tab.Goto(s.URL + "/projects/alpha/stories/1_story_login")
	tab.WaitText(want)
	tab.Wait(`[...document.querySelectorAll('time[data-clock]')].some(e => e.title === '` + want + `:05')`)

	tab.Goto(s.URL + "/")
	tab.Wait(`document.querySelector('.wagon time')`)
	browsertest.Eval[bool](tab, `document.querySelector('.wagon time').dateTime = '`+strconv.Itoa(year)+`-09-21T14:32:05Z', document.querySelector('.wagon').focus(), true`)
	tab.Wait(`document.querySelector('#tip:popover-open').textContent.endsWith('since ` + want + `')`)
}
