package console_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

// flowSite has a project of half a year: n stories a day were finished, and some are in work.
func flowSite(t *testing.T, days, n int, id func(day, i int) string) *consoleSite {
	t.Helper()
	s := newConsoleSite(t)
	work := []string{"2_current:", "3_qa:", "4_merge:"}
	var records []string
	now := time.Now()
	for day := days; day > 0; day-- {
		for i := range n {
			story, took := id(day, i), 1+(day*7+i*13)%9
			if i == 0 && day%8 == 0 {
				took = 20 + day%30
			}
			done := now.AddDate(0, 0, -day).Add(time.Duration(i%9) * time.Minute)
			begun := done.AddDate(0, 0, -took)
			records = append(records, moved(story, "1_backlog", "2_current", begun), moved(story, "2_current", "3_qa", begun.Add(time.Duration(took)*12*time.Hour)),
				moved(story, "3_qa", "5_done", done))
		}
	}
	for i := range 120 {
		story := id(1000, i)
		at := now.AddDate(0, 0, -i%37)
		if i < 17 || n > 3 {
			work[i%3] += " " + story + ","
			records = append(records, moved(story, "1_backlog", strings.TrimSuffix(strings.Fields(work[i%3])[0], ":"), at))
		}
	}
	at := regexp.MustCompile(`"timestamp_ms":(\d+)`)
	slices.SortStableFunc(records, func(a, b string) int { return cmp.Compare(at.FindString(a), at.FindString(b)) })
	for len(records) > 0 {
		some := records[:min(len(records), 500)]
		s.Record("alpha", some...)
		records = records[len(some):]
	}
	stages := board("1_backlog: 1_story_idea, 2_story_idea", strings.TrimSuffix(work[0], ","), strings.TrimSuffix(work[1], ","), strings.TrimSuffix(work[2], ","), "5_done:")
	s.add("alpha", stages)
	s.Answered()
	return s
}

// TestThePageOfFlowStaysSmall however many stories there are, and however long their ids and names: some 215 points, those above
// 85 % with a name and a link each, the others in one group with short links.
func TestThePageOfFlowStaysSmall(t *testing.T) {
	s := flowSite(t, 178, 13, func(day, i int) string { return fmt.Sprintf("%d_%d_%s", day, i, strings.Repeat("é", 180)) })
	waittest.Until(t, "all is read", func() bool {
		return strings.Count(s.Get("/flow.csv?days=180&tz=UTC").Text, "\n")-1 == 178*13
	})
	page := s.Get("/flow?days=180&tz=UTC").WantStatus(t, 200)
	page.WantText(t, "A dot for each 11.")
	if n := gzipped(t, page.Text); n > 12_000 { // its times differ by the hour
		t.Errorf("the page has %d bytes on the wire, want 12,000 at most", n)
	}
	group := page.Text[strings.Index(page.Text, `<g aria-hidden="true" class="quiet">`):]
	group = group[:strings.Index(group, "</g>")]
	quiet, loud := strings.Count(group, `<a href="/flow/`), strings.Count(page.Text, `class="loud"`)
	if quiet+loud < 200 || quiet+loud > 215 || loud == 0 || loud > 75 || strings.Count(group, `tabindex="-1"`) != quiet || strings.Contains(group, "aria-label") {
		t.Errorf("%d quiet points, %d loud ones", quiet, loud)
	}
	table := page.Text[strings.Index(page.Text, `id="flow-stories"`):]
	if n := strings.Count(table[:strings.Index(table, "</table>")], `<th scope="row">`); n != 40 {
		t.Errorf("the table has %d stories", n)
	}
}

// TestBrowserFlow: the page and what a project's page says of it, on a phone and a desk, in both themes, printed, and as tables.
// covers lists texts in pictures over which another text lies.
const covers = `(all => all.filter((e, i) => {
	const box = e.getBoundingClientRect()
	const others = [...all, ...e.closest('section').querySelectorAll('h2, p, summary')]
	return others.some(o => o !== e && (b => b.left < box.right - 1 && b.right > box.left + 1 && b.top < box.bottom - 3 && b.bottom > box.top + 3)(o.getBoundingClientRect()))
}).map(e => e.textContent))([...document.querySelectorAll('.plot text')].filter(e => e.checkVisibility()))`

func TestBrowserFlow(t *testing.T) {
	browsertest.Parallel(t)
	s := flowSite(t, 100, 2, func(day, i int) string { return fmt.Sprintf("%d_story_of_usual_length", day*3+i) })
	s.move("alpha", "7777_story_slow", "1_backlog", "2_current", time.Now().AddDate(0, 0, -70))
	s.move("alpha", "7777_story_slow", "2_current", "5_done", time.Now())
	tab := browsertest.Open(t)
	tab.Zone("Pacific/Kiritimati")
	for _, width := range []int64{1280, 360} {
		for _, scheme := range []string{"light", "dark"} {
			tab.Size(width, 900)
			tab.Media("prefers-color-scheme", scheme)
			for path, heading := range map[string]string{"/flow": "Cumulative flow", "/projects/alpha": "Flow"} {
				tab.Goto(s.URL + path)
				tab.Find("heading", heading)
				wantNone(t, tab, "covers labels of axes", covers)
				if over := browsertest.Eval[float64](tab, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
					t.Errorf("%s at %d: %v too wide", path, width, over)
				}
				tab.Accessible()
				if dir := os.Getenv("FLOW_PICTURES"); dir != "" {
					tab.Screenshot(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", strings.ReplaceAll(path[1:], "/", "-"), width, scheme)))
				}
			}
		}
	}
	tab.Size(1280, 900)
	tab.Goto(s.URL + "/flow")
	tab.Find("heading", "Cumulative flow")
	if hole := browsertest.Eval[float64](tab, `(bottom => bottom('.flow-ages') - bottom('.flow-side > :last-child'))(q => document.querySelector(q).getBoundingClientRect().bottom)`); hole < -1 || hole > 1 {
		t.Errorf("a hole of %v px beside the ageing work", hole)
	}
	for _, path := range []string{"/waiting", "/flow"} {
		tab.Goto(s.URL + path)
		tab.Find("heading", map[string]string{"/waiting": "Waiting longest", "/flow": "Flow"}[path])
		if high := browsertest.Eval[float64](tab, `document.querySelector('.log-filter').offsetHeight`); high > 40 {
			t.Errorf("%s: the filter is %v px high", path, high)
		}
	}
	// A point above 85 % leads to its story; the days are the reader's.
	if tz := browsertest.Eval[string](tab, `document.querySelector("#tz").value`); tz != "Pacific/Kiritimati" {
		t.Errorf("the zone is %q", tz)
	}
	slow := `document.querySelector('svg a[aria-label="7777 story slow, 71 days"]')`
	tab.Wait(slow + ` && getComputedStyle(` + slow + `).cursor === "pointer"`)
	browsertest.Eval[bool](tab, slow+`.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}))`)
	tab.Wait(`location.pathname === '/projects/alpha/stories/7777_story_slow'`)
	// Its forecasts answer what is typed, and the address has it.
	tab.Goto(s.URL + "/flow")
	tab.Find("spinbutton", "Number of stories").Type("12")
	tab.Find("button", "Forecast").Click()
	tab.Wait(`location.search.includes('items=12')`)
	tab.WaitText("stories are finished by")
	tab.Find("link", "30 days").Click()
	tab.Wait(`location.search.includes('days=30') && location.search.includes('items=12')`)
	wantNone(t, tab, "covers labels of axes two by two", covers)
	// The pictures are there as tables.
	for _, id := range []string{"flow-stories", "flow-days"} {
		browsertest.Eval[bool](tab, `document.querySelector("#`+id+` > summary").click(), true`)
		tab.Wait(`document.querySelector("#` + id + ` table").offsetHeight > 0`)
	}
	if rows := browsertest.Eval[float64](tab, `document.querySelectorAll("#flow-days tbody tr").length`); rows != 30 {
		t.Errorf("%v days", rows)
	}
	// On paper there are no controls, and it says what it is about.
	tab.Media("media", "print")
	tab.Wait(`document.querySelector(".print-only").offsetHeight > 0 && document.querySelector("#flow-filter").offsetHeight === 0`)
}

// TestFlowBeginsAtTheFirstKnownDay: nothing is drawn or averaged before it, what took less than a day is told in hours, and while
// nothing is known a sentence says what is needed.
func TestFlowBeginsAtTheFirstKnownDay(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog: 5_story_idea", "2_current:", "5_done: 4_story_quick"))
	s.Answered()
	s.Get("/flow").WantText(t, "Flow begins with the first move", "10 finished", "10 days").WantNoText(t, "Throughput", "Forecast", "Nothing is in work")

	now := time.Now()
	s.move("alpha", "3_story_slow", "1_backlog", "2_current", now.AddDate(0, 0, -4))
	s.move("alpha", "3_story_slow", "2_current", "5_done", now.AddDate(0, 0, -2))
	s.move("alpha", "4_story_quick", "1_backlog", "2_current", now.Add(-3*time.Hour))
	s.move("alpha", "4_story_quick", "2_current", "5_done", now.Add(-time.Hour))
	s.move("alpha", "5_story_idea", "1_backlog", "2_current", now.Add(-5*time.Hour))
	s.boards.set("alpha", board("1_backlog:", "2_current: 5_story_idea", "5_done: 4_story_quick"))
	s.Answered()
	page := s.Get("/flow?tz=UTC")
	page.WantText(t, "in 5 days", "Known since "+now.UTC().AddDate(0, 0, -4).Format("2 January"), "5 of the 90 days",
		"of 10 finished stories, up to yesterday", "How good forecasts were is known 14 days after the first one.", "<td>2 h</td>", "<td>3 d</td>",
		"2 finished, <strong>0.4 a day</strong>").WantNoText(t, "Flow begins with", "nothing is known before")
	days := page.Text[strings.Index(page.Text, `id="flow-days"`):]
	if n := strings.Count(days[:strings.Index(days, "</details>")], `<th scope="row">`); n != 5 {
		t.Errorf("the table by day has %d days", n)
	}
}

// TestOneFinishedStoryIsASentence, with its name: pictures begin with the second.
func TestOneFinishedStoryIsASentence(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog:", "2_current: 5_story_idea", "5_done: 4_story_quick"))
	s.move("alpha", "4_story_quick", "1_backlog", "2_current", time.Now().Add(-3*time.Hour))
	s.move("alpha", "4_story_quick", "2_current", "5_done", time.Now().Add(-time.Hour))
	s.Answered()
	s.Get("/flow").WantText(t, "One story was finished in these days:", "4_story_quick", "in 2 h.", "Work in progress").
		WantNoText(t, "Throughput<", "Cumulative flow<")
}

// TestFlowSaysWhatHoldsUpAgeingWork, in words and on its track, before any move is known.
func TestFlowSaysWhatHoldsUpAgeingWork(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog:", "2_current: 1_story_keys!waiting for a key, 2_story_rates, 3_story_free", "3_qa: 4_story_stock?conflict in stock.go", "5_done:"))
	s.Answered()
	s.asks(domain.Question{Kind: domain.QuestionText, Project: "alpha", StoryID: "2_story_rates", Prompt: "Two <rates>?"})
	page := s.Get("/flow").WantStatus(t, 200)
	for _, text := range []string{
		"Blocked: waiting for a key", "asks: Two &lt;rates&gt;?", "Merge failed: conflict in stock.go", `class="letter asks" y="4">?<`,
		"Flow begins with the first move",
	} {
		page.WantText(t, text)
	}
	if n := strings.Count(page.Text, `class="why`); n != 3 {
		t.Errorf("%d stories are held up", n)
	}
}

// TestForecastsAreShownBesideWhatCame: of a team that stopped six weeks ago.
func TestForecastsAreShownBesideWhatCame(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog:", "2_current:", "5_done:"))
	s.Answered()
	for day := 42; day < 80; day++ {
		id := fmt.Sprint(day)
		s.move("alpha", id, "1_backlog", "2_current", time.Now().AddDate(0, 0, -day-1))
		s.move("alpha", id, "2_current", "5_done", time.Now().AddDate(0, 0, -day))
	}
	s.Get("/flow").WantStatus(t, 200).WantText(t, "How good were we", "less than promised", `class="short" d="M`, "At least", "fell short")
}

// TestFlowSaysWhereWorkWaits: in the stage that has doubled within three weeks. What was finished today is counted, but
// no forecast is made of a day that is not over.
func TestFlowSaysWhereWorkWaits(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog:", "2_current: 1_story_a", "3_qa: 2_story_b, 3_story_c, 4_story_d, 5_story_e", "5_done: 6_story_f"))
	s.Answered()
	s.move("alpha", "1_story_a", "1_backlog", "2_current", time.Now().AddDate(0, 0, -40))
	for day, id := range []string{"2_story_b", "3_story_c", "4_story_d", "5_story_e"} {
		s.move("alpha", id, "1_backlog", "3_qa", time.Now().AddDate(0, 0, -day-3))
	}
	s.move("alpha", "6_story_f", "2_current", "5_done", time.Now())
	s.Get("/flow").WantStatus(t, 200).WantText(t, "0 of 10 finished stories, up to yesterday; 1 that was finished today counts tomorrow",
		"QA holds 4, three weeks ago it held 0", `class="band-waits"`)
}

// deadlines notes how many deadlines an answer has been given, and how much it wrote at most under one of them.
type deadlines struct {
	*httptest.ResponseRecorder
	set, since, most int
}

func (d *deadlines) SetWriteDeadline(time.Time) error {
	d.set, d.since = d.set+1, 0
	return nil
}

func (d *deadlines) Write(b []byte) (int, error) {
	d.since += len(b)
	d.most = max(d.most, d.since)
	return d.ResponseRecorder.Write(b)
}

// TestALongTableHasADeadlineForEachPart so that a reader who is slow, but reads, gets the whole of it.
func TestALongTableHasADeadlineForEachPart(t *testing.T) {
	s := flowSite(t, 178, 13, func(day, i int) string { return fmt.Sprintf("%d_%d_story", day, i) })
	const rows = 178 * 13
	var d *deadlines
	waittest.Until(t, "all is read", func() bool {
		d = &deadlines{ResponseRecorder: httptest.NewRecorder()}
		s.Server.Config.Handler.ServeHTTP(d, httptest.NewRequest(http.MethodGet, "http://localhost/flow.csv?days=180&tz=UTC", nil))
		return strings.Count(d.Body.String(), "\n")-1 == rows
	})
	if size := d.Body.Len(); d.set < 3 || d.most > size/2 {
		t.Errorf("%d deadlines, %d of %d bytes under one", d.set, d.most, size)
	}
}
