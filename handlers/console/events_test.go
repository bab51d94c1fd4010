package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
)

func TestEventsAreFiltered(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", nil)
	now := time.Now()
	s.move("alpha", "1_story_one", "1_backlog", "2_current", now)
	s.move("beta", "2_story_two", "1_backlog", "2_current", now)
	s.Record("alpha", fmt.Sprintf(`{"type":"story_blocked","story_id":"3_story_three","story_name":"Three","reason":"no key","timestamp_ms":%d}`, now.UnixMilli()))
	for query, want := range map[string]string{
		"":                           "3_story_three|2_story_two|1_story_one",
		"?project=alpha":             "3_story_three|1_story_one",
		"?type=story_blocked":        "3_story_three",
		"?q=TWO":                     "2_story_two",
		"?project=alpha&q=one":       "1_story_one",
		"?project=beta&type=unknown": "",
	} {
		page := s.Get("/events"+query).WantStatus(t, http.StatusOK)
		var got []string
		for _, name := range []string{"3_story_three", "2_story_two", "1_story_one"} {
			if strings.Contains(page.Text, name) {
				got = append(got, name)
			}
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
	for _, query := range []string{
		"?before=x", "?before=-1", "?before=5-0", "?since=1", "?from=yesterday", "?to=-1", "?from=2026-11-22T18:42&tz=Mars/Olympus",
	} {
		s.Get("/events"+query).WantStatus(t, http.StatusBadRequest)
	}
}

var (
	eventID = regexp.MustCompile(`id="event-(\d+)"`)
	older   = regexp.MustCompile(`data-hx-get="(/events\?before=[^"]*)"`)
)

func eventIDs(a gatewaytest.Answer) (ids []string) {
	for _, match := range eventID.FindAllStringSubmatch(a.Text, -1) {
		ids = append(ids, match[1])
	}
	return ids
}

func TestOlderEventsFollowWithoutLossOrRepetition(t *testing.T) {
	s := newConsoleSite(t)
	s.moveMany("alpha", 250, time.Now())
	page := s.Get("/events")
	ids := eventIDs(page)
	for {
		match := older.FindStringSubmatch(page.Text)
		if match == nil {
			break
		}
		page = s.Get(strings.ReplaceAll(match[1], "&amp;", "&"), "HX-Request", "true").WantStatus(t, http.StatusOK)
		page.WantNoText(t, "<html")
		ids = append(ids, eventIDs(page)...)
	}
	if len(ids) != 250 {
		t.Fatalf("%d events", len(ids))
	}
	for i, id := range ids {
		if id != fmt.Sprint(250-i) {
			t.Fatalf("event %s at place %d", id, i)
		}
	}
	s.Get(strings.ReplaceAll(older.FindStringSubmatch(s.Get("/events").Text)[1], "&amp;", "&")).WantText(t, "<html", "Show the newest", `id="event-150"`)
}

func TestWhatIsReadStaysWhileEventsCome(t *testing.T) {
	s := newConsoleSite(t)
	s.moveMany("alpha", 150, time.Now())
	page := s.Get("/events")
	first := eventIDs(page)
	if len(first) != 100 || first[99] != "51" {
		t.Fatalf("the page shows %d events", len(first))
	}
	s.moveMany("beta", 30, time.Now().Add(time.Second))
	part := s.Get(partAddress(t, page), "HX-Request", "true")
	if ids := eventIDs(part); len(ids) != 130 || ids[0] != "180" || ids[129] != "51" {
		t.Fatalf("the part shows %d events, from %s to %s", len(ids), ids[0], ids[len(ids)-1])
	}
	part.WantNoText(t, "Too many new events")
	s.moveMany("gamma", 500, time.Now().Add(2*time.Second))
	part = s.Get(partAddress(t, page), "HX-Request", "true").WantText(t, "Too many new events to show.")
	if ids := eventIDs(part); len(ids) != 500 || ids[0] != "680" {
		t.Fatalf("the part shows %d events, from %s", len(ids), ids[0])
	}
}

func TestOlderEventsAreReachableBehindHugeOnes(t *testing.T) {
	s := newConsoleSite(t)
	pad := strings.Repeat("x", 500_000)
	for i := range 20 { // 10 MB, more than two pages hold
		s.Record("alpha", fmt.Sprintf(`{"type":"note","pad":%q,"timestamp_ms":%d}`, pad, i+1))
	}
	page := s.Get("/events")
	seen := len(eventIDs(page))
	if seen >= 10 {
		t.Fatalf("the first page shows %d events: they are not huge", seen)
	}
	s.Get(partAddress(t, page)+"x", "HX-Request", "true").WantNoText(t, "Too many new events") // nothing came since
	for match := older.FindStringSubmatch(page.Text); match != nil; match = older.FindStringSubmatch(page.Text) {
		page = s.Get(strings.ReplaceAll(match[1], "&amp;", "&"), "HX-Request", "true").WantStatus(t, http.StatusOK)
		seen += len(eventIDs(page))
	}
	if seen != 20 {
		t.Errorf("%d of 20 events can be reached", seen)
	}
}

// TestEventsAreInTheOrderOfTime: a project that brings its history does not put it above today's events.
func TestEventsAreInTheOrderOfTime(t *testing.T) {
	s := newConsoleSite(t)
	at := time.Date(2026, 11, 23, 14, 32, 0, 0, time.UTC)
	s.add("alpha", nil)
	s.move("alpha", "1_story_new", "1_backlog", "2_current", at)
	s.move("beta", "2_story_old", "1_backlog", "2_current", at.Add(-300*time.Hour))
	s.move("alpha", "3_story_night", "1_backlog", "2_current", at.Add(-10*time.Hour))
	for query, want := range map[string]string{
		"":                                     "1 3 2",
		"?project=alpha":                       "1 3",
		"?type=stage_transition":               "1 3 2",
		"?from=2026-11-23T00:00":               "1 3",
		"?from=1795408320000":                  "1 3", // 04:32
		"?from=1795408320001":                  "1",
		"?to=1795408320000":                    "2",
		"?to=2026-11-22":                       "2",
		"?to=1":                                "",
		"?from=1795408320000&to=1795408320001": "3",
		"?from=2026-11-23T13:32&tz=Asia/Tokyo": "1 3",
		"?from=2026-11-23T13:33&tz=Asia/Tokyo": "1",
	} {
		if got := strings.Join(eventIDs(s.Get("/events"+query).WantStatus(t, http.StatusOK)), " "); got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
	if got := eventIDs(s.Get("/")); strings.Join(got, " ") != "1 3 2" {
		t.Errorf("the overview lists %v", got)
	}
	s.Get("/events?from=2026-11-23T00:00").WantText(t, "2 events in", "1 project", "<b>2</b> moved")
}

// TestRunsOfEventsAreFolded: what is folded is on the page, in order.
func TestRunsOfEventsAreFolded(t *testing.T) {
	s := newConsoleSite(t)
	at := time.Now().Truncate(24 * time.Hour).Add(-12 * time.Hour) // all on one day
	for i := range 4 {
		s.move("alpha", fmt.Sprintf("%d_story", i), "1_backlog", "2_current", at.Add(time.Duration(i)*time.Second))
	}
	s.move("beta", "9_story", "1_backlog", "2_current", at.Add(time.Minute))
	s.move("beta", "9_story", "2_current", "3_qa", at.Add(2*time.Minute))
	s.move("beta", "9_story", "3_qa", "5_done", at.Add(3*time.Minute))
	page := s.Get("/events").WantText(t, "Backlog → Done", "4 stories moved")
	if got := strings.Join(eventIDs(page), " "); got != "7 6 5 4 3 2 1" {
		t.Errorf("the page lists %s", got)
	}
	if n := strings.Count(page.Text, `<details id="run-`); n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
}

// TestEventsSayWhoDidIt: what was changed through the gateway has its author, an agent with its badge.
func TestEventsSayWhoDidIt(t *testing.T) {
	s := newStorySite(t, true, map[string]string{"2_current/2_story_audit.md": "# Audit log\n"})
	s.join("builder-1")
	who := domain.Actor{Who: "builder-1", Account: "token b", Role: domain.RoleOperator, Channel: domain.ChannelMCP}
	if _, _, err := s.Claims.Claim(domain.WithActor(t.Context(), &who), "webshop", service.ClaimRequest{StoryID: "2_story_audit", To: "3_qa"}); err != nil {
		t.Fatal(err)
	}
	s.move("webshop", "2_story_audit", "2_current", "3_qa", time.Now())
	s.move("webshop", "3_story_pay", "3_qa", "2_current", time.Now())
	page := s.Get("/events").WantText(t, "QA → Current (back)", `title="by builder-1 over MCP"`, `aria-hidden="true">B1</span> <bdi class="truncate">builder-1</bdi>`)
	if n := strings.Count(page.Text, ">builder-1<"); n != 1 {
		t.Errorf("the agent did %d things", n)
	}
}

// TestEventsSayWhatHappened: a sentence about the window, and the numbers of each day.
func TestEventsSayWhatHappened(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", nil)
	now := time.Now()
	noon := time.Date(now.Year(), now.Month(), now.Day(), 12, 0, 0, 0, now.Location()).AddDate(0, 0, -40)
	s.move("alpha", "1_story", "2_current", "5_done", noon)
	s.move("beta", "2_story", "5_done", "6_archived", noon) // it was finished before
	s.move("beta", "3_story", "2_current", "3_qa", now)
	s.Record("alpha", fmt.Sprintf(`{"type":"feed_gap","missed":1400,"timestamp_ms":%d}`, noon.UnixMilli()))
	name, date := noon.Format("Monday"), noon.Format("2 January")
	if noon.Year() != now.Year() {
		date += noon.Format(" 2006")
	}
	s.Get("/events").WantText(t, "In the last 48 hours</b>: 1 event in 1 project<bdi></bdi>.", "<h2>Today <span>"+now.Format("Monday 2 January")+"</span> <small>1 event</small>", "<h2>"+name+" <span>"+date+"</span> <small>3 events, 1 finished</small>")
	since := fmt.Sprint("/events?from=", noon.UnixMilli())
	s.Get(since).WantText(t, ", "+strconv.Itoa(int(now.Sub(noon).Hours()/24))+" d", ": 4 events in 2 projects<bdi></bdi>.", "<b>1</b> finished", "<b>3</b> moved").WantNoText(t, "Shown:")
	finished := s.Get(since+"&type=finished").WantText(t, ": 4 events in 2 projects<bdi></bdi>.", "Shown: finished.", "<b>3</b> moved")
	ofAlpha := s.Get(since + "&type=finished&project=alpha")
	if got := fmt.Sprint(eventIDs(finished), eventIDs(ofAlpha)); got != "[1] [1]" {
		t.Errorf("finished are %s", got)
	}
	s.Get(since+"&type=stage_transition&q=x<y").WantText(t, ": 4 events in 2 projects", "Shown: moved with “x&lt;y”.")
	s.Get(since+"&project=beta").WantText(t, ": 2 events in <bdi>beta</bdi>.")
	s.moveMany("alpha", 150, now)
	s.Get("/events").WantText(t, "<small>the newest 100</small>")
}

func TestFiltersHaveALimit(t *testing.T) {
	s := newConsoleSite(t)
	longest, longer := strings.Repeat("é", 200), strings.Repeat("é", 201)
	for _, path := range []string{"/?q=", "/events?q=", "/events?project=", "/events?type=", "/api/gateway/events?project=", "/api/gateway/events?type="} {
		s.Get(path+url.QueryEscape(longest)).WantStatus(t, http.StatusOK)
		s.Get(path+url.QueryEscape(longer)).WantStatus(t, http.StatusBadRequest).WantText(t, "must be at most 200 characters")
	}
	s.Get("/api/gateway/events/stream?project="+url.QueryEscape(longer)).WantStatus(t, http.StatusBadRequest)
}
