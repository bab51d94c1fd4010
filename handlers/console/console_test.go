package console_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/static"
)

// partAddress returns the address from which the page's part refreshes itself.
func partAddress(t testing.TB, a gatewaytest.Answer) string {
	t.Helper()
	match := regexp.MustCompile(`data-live data-hx-get="([^"]*)"`).FindStringSubmatch(a.Text)
	if match == nil {
		t.Fatalf("%s has no part that refreshes itself", a.Request.URL)
	}
	return strings.ReplaceAll(match[1], "&amp;", "&")
}

func sampleSite(t testing.TB) *consoleSite {
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog: 30_story_export", "2_current: 14_story_login, 9_story_search", "3_qa: 12_story_pay!waiting for a key", "5_done: 1_story_first"))
	s.add("beta", board("1_backlog:", "2_current:", "4_merge: 7_story_cache?conflict in go.mod", "5_done:"))
	s.add("gamma", nil)
	s.move("alpha", "14_story_login", "1_backlog", "2_current", time.Now().Add(-5*time.Minute))
	if err := s.Projects.Switch(t.Context(), "alpha"); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryPageHoldsItsDataAndItsHeading(t *testing.T) {
	s := sampleSite(t)
	for path, want := range map[string][]string{
		"/": {
			"<title>(3) Overview · Switchyard</title>", ">Overview</h1>", "gamma", "Unreachable", "Nothing is running at its address. Start its project server, or correct the address.",
			"Blocked", "waiting for a key", "Merge failed", "conflict in go.mod", "Login", "Backlog → Current",
		},
		"/projects": {">Projects</h1>", "alpha", "active", "1 blocked", "gamma", "unreachable", "beta", "Add project</button>"},
		"/projects/alpha": {
			">alpha</h1>", `value="http://127.0.0.1:3001"`, "Save</button>", "Backlog", "Export", "Current", "Login", "Search", "QA", "Pay", "Blocked: waiting for a key", "First",
			"Backlog → Current",
		},
		"/events": {">Events</h1>", "data-hour", "story login", "Backlog → Current", "alpha"},
	} {
		page := s.Get(path).WantStatus(t, http.StatusOK).WantText(t, want...)
		if n := strings.Count(page.Text, "<h1"); n != 1 {
			t.Errorf("%s has %d h1", path, n)
		}
		for header, want := range map[string]string{
			"Content-Type":  "text/html; charset=utf-8",
			"Cache-Control": "private, no-cache",
			"Vary":          "HX-Request, Accept-Encoding, Cookie",
		} {
			if got := page.Header.Get(header); got != want {
				t.Errorf("%s: %s: %q, want %q", path, header, got, want)
			}
		}
		if inline := regexp.MustCompile(`<style|<script(?: [^>]*)?>[^<]|\son[a-z]+=|\sstyle=|javascript:`).FindString(page.Text); inline != "" {
			t.Errorf("%s holds %q, which the content security policy forbids", path, inline)
		}
	}
}

func TestAnEmptyGatewaySaysHowToBegin(t *testing.T) {
	s := newConsoleSite(t)
	for _, path := range []string{"/", "/projects"} {
		s.Get(path).WantStatus(t, http.StatusOK).WantText(t, "switchyard project --name")
	}
	s.Get("/events").WantText(t, "No move has been seen yet", "What git tells of the time before")
}

func TestUnchangedPagesAndPartsAreNotSentAgain(t *testing.T) {
	s := sampleSite(t)
	for _, path := range []string{"/", "/?q=al&show=busy", "/projects", "/projects/alpha", "/events"} {
		page := s.Get(path)
		again := s.Get(path, "If-None-Match", page.Header.Get("ETag"))
		if again.StatusCode != http.StatusNotModified { // if a new minute has begun, the ages on the page have changed
			again = s.Get(path, "If-None-Match", again.Header.Get("ETag"))
		}
		if again.StatusCode != http.StatusNotModified {
			t.Errorf("%s: %d for the same page, want 304", path, again.StatusCode)
		}
		part := s.Get(partAddress(t, page), "HX-Request", "true")
		if part.StatusCode != http.StatusNoContent {
			part = s.Get(partAddress(t, s.Get(path)), "HX-Request", "true")
		}
		if part.StatusCode != http.StatusNoContent {
			t.Errorf("%s: %d for the same part, want 204", path, part.StatusCode)
		}
	}
}

func TestAPartIsSentWhenItHasChanged(t *testing.T) {
	s := sampleSite(t)
	addresses := map[string]string{}
	for _, path := range []string{"/", "/projects/alpha", "/events"} {
		addresses[path] = partAddress(t, s.Get(path))
	}
	s.move("alpha", "9_story_search", "2_current", "3_qa", time.Now())
	for path, address := range addresses {
		part := s.Get(address, "HX-Request", "true").WantStatus(t, http.StatusOK)
		part.WantNoText(t, "<html", "<h1")
		if part.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be cached in the page's place", path)
		}
		if next := partAddress(t, part); next == address {
			t.Errorf("%s: the new part has the old version", path)
		}
	}
	s.Get(addresses["/events"], "HX-Request", "true").WantText(t, "9_story_search", "Current → QA", "Backlog → Current")
}

func TestEveryPartNamesTheActiveProjectWhenItChanges(t *testing.T) {
	s := sampleSite(t)
	for _, path := range []string{"/", "/projects", "/projects/gamma", "/agents", "/events", "/bot-config"} {
		address := partAddress(t, s.Get(path))
		s.Get(address, "HX-Request", "true").WantStatus(t, http.StatusNoContent)
		for _, name := range []string{"beta", "alpha"} {
			if err := s.Projects.Switch(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			part := s.Get(address, "HX-Request", "true").WantStatus(t, http.StatusOK)
			if got := part.Header.Get("Active-Project"); got != name {
				t.Errorf("%s: active project %q, want %q", path, got, name)
			}
			address = partAddress(t, part)
		}
		s.Get(address, "HX-Request", "true").WantStatus(t, http.StatusNoContent)
	}
}

func TestOnlyHtmxGetsAPart(t *testing.T) {
	s := sampleSite(t)
	for _, headers := range [][]string{
		{},
		{"HX-Request", "true", "HX-Boosted", "true"},
		{"HX-Request", "true", "HX-History-Restore-Request", "true"},
	} {
		s.Get("/", headers...).WantText(t, "<html", "<h1")
	}
}

func TestManyReadersShareTheirFetches(t *testing.T) {
	s := sampleSite(t)
	address := partAddress(t, s.Get("/"))
	asked := s.boards.count()
	for range 10 {
		s.Get(address, "HX-Request", "true")
		s.Get("/projects")
	}
	if now := s.boards.count(); now > asked+3 { // the unreachable one may be asked again
		t.Errorf("20 requests asked the project servers %d times", now-asked)
	}
}

func TestPagesAreCompressedForClientsThatAcceptIt(t *testing.T) {
	s := sampleSite(t)
	for offer, want := range map[string]string{"gzip": "gzip", "br, gzip;q=0.5": "gzip", "br": "", "gzip;q=0": ""} {
		page := s.Get("/", "Accept-Encoding", offer)
		if got := page.Header.Get("Content-Encoding"); got != want {
			t.Errorf("Accept-Encoding %q: Content-Encoding %q, want %q", offer, got, want)
		}
		if want == "" {
			page.WantText(t, ">Overview</h1>", "</html>")
		}
	}
}

func TestFilesAreCachedForAYearUnderTheirHash(t *testing.T) {
	s := newConsoleSite(t)
	page := s.Get("/")
	files := regexp.MustCompile(`(?:src|href)="(/static/[^"]*)"`).FindAllStringSubmatch(page.Text, -1)
	if len(files) < 3 {
		t.Fatalf("the page names %d files", len(files))
	}
	for _, file := range files {
		got := s.Get(file[1]).WantStatus(t, http.StatusOK)
		if cache := got.Header.Get("Cache-Control"); cache != "public, max-age=31536000, immutable" {
			t.Errorf("%s: Cache-Control: %s", file[1], cache)
		}
	}
	s.Get("/static/app.0123456789ab.css").WantStatus(t, http.StatusNotFound)
	s.Get("/static/app.css").WantStatus(t, http.StatusNotFound)
}

func TestTheFirstPageIsLight(t *testing.T) {
	s := sampleSite(t)
	page := s.Get("/", "Accept-Encoding", "gzip")
	total := len(page.Text)
	for _, file := range regexp.MustCompile(`(?:src|href)="(/static/[^"]*)"`).FindAllStringSubmatch(s.Get("/").Text, -1) {
		total += len(s.Get(file[1], "Accept-Encoding", "gzip").Text)
	}
	if total > 60_000 {
		t.Errorf("the first page with all its files is %d bytes on the wire", total)
	}
	t.Logf("%d bytes on the wire", total)
}

func TestAddressesThatLeadNowhere(t *testing.T) {
	s := newConsoleSite(t)
	for path, contentType := range map[string]string{
		"/nowhere":                "text/html; charset=utf-8",
		"/projects/none":          "text/html; charset=utf-8",
		"/api/nowhere":            "text/plain; charset=utf-8",
		"/gateway/nowhere":        "text/plain; charset=utf-8",
		"/api/gateway/projects/x": "text/plain; charset=utf-8",
	} {
		page := s.Get(path)
		if path == "/api/gateway/projects/x" {
			page.WantStatus(t, http.StatusMethodNotAllowed)
		} else {
			page.WantStatus(t, http.StatusNotFound)
		}
		if got := page.Header.Get("Content-Type"); got != contentType {
			t.Errorf("%s: %s, want %s", path, got, contentType)
		}
	}
	s.Get("/nowhere").WantText(t, "Not found</h1>", "Back to Overview")
}

func TestAPartWhoseProjectIsGoneReloadsItsPage(t *testing.T) {
	s := sampleSite(t)
	address := partAddress(t, s.Get("/projects/beta"))
	if _, err := s.Projects.Remove(t.Context(), "beta"); err != nil {
		t.Fatal(err)
	}
	part := s.Get(address, "HX-Request", "true").WantStatus(t, http.StatusNotFound)
	if part.Header.Get("HX-Refresh") != "true" || part.Header.Get("HX-Reswap") != "none" {
		t.Errorf("headers %v", part.Header)
	}
}

func TestMarkupInNamesIsText(t *testing.T) {
	s := newConsoleSite(t)
	evil := `<script>alert(1)</script>"'&`
	s.add(evil, []domain.Stage{{Name: "1_a"}, {Name: "2_<b>x</b>", Items: []domain.Item{{StoryID: evil, StoryName: evil, Blocked: evil, MergeFailure: evil}}}, {Name: "5_done"}})
	s.Record(evil, fmt.Sprintf(`{"type":"story_blocked","story_id":%q,"story_name":%q,"reason":%q,"timestamp_ms":1}`, evil, evil, evil))
	s.Record(evil, fmt.Sprintf(`{"type":%q,"timestamp_ms":2}`, evil))
	for _, path := range []string{
		"/", "/projects", "/projects/%3Cscript%3Ealert%281%29%3C%2Fscript%3E%22%27&", "/events", "/events?q=%3Cscript%3Ealert(1)", "/?q=%3Cscript%3Ealert(1)",
	} {
		s.Get(path).WantStatus(t, http.StatusOK).WantNoText(t, "<script>alert", "<b>x</b>")
	}
}

func TestTheThemeIsKept(t *testing.T) {
	s := newConsoleSite(t)
	s.Get("/").WantNoText(t, "data-theme=")
	for _, theme := range []string{"dark", "light"} {
		a := s.Submit("/theme", "theme", theme, "next", "/events?q=x").WantStatus(t, http.StatusSeeOther)
		if a.Header.Get("Location") != "/events?q=x" {
			t.Errorf("leads to %q", a.Header.Get("Location"))
		}
		s.Get("/").WantText(t, `data-theme="`+theme+`"`)
	}
	s.Submit("/theme", "theme", "system", "next", "/")
	s.Get("/").WantNoText(t, "data-theme=")
	s.Submit("/theme", "theme", "pink").WantStatus(t, http.StatusBadRequest)
}

func TestFormsDoNotLeadAway(t *testing.T) {
	s := newConsoleSite(t)
	for _, next := range []string{"https://evil.test/", "//evil.test", `/\evil.test`, "javascript:alert(1)", "evil", "", "/\t/evil.test"} {
		a := s.Submit("/theme", "theme", "dark", "next", next).WantStatus(t, http.StatusSeeOther)
		if got := a.Header.Get("Location"); got != "/" {
			t.Errorf("next %q leads to %q", next, got)
		}
	}
}

func TestEveryFileOfTheConsoleIsUsed(t *testing.T) {
	s := newConsoleSite(t)
	page := s.Get("/")
	for _, name := range []string{"app.css", "icon.svg", static.Console} {
		page.WantText(t, static.Path(name))
	}
}

func TestPagesNameWhoReadsThem(t *testing.T) {
	t.Parallel()
	s := newConsoleSite(t)
	s.Get("/").WantText(t, "Everybody", "administrator, without login")
}

func TestTitlesNameWhatWasSearchedFor(t *testing.T) {
	t.Parallel()
	s := newConsoleSite(t)
	for path, title := range map[string]string{
		"/search?q=needle": "Search with needle", "/projects?q=shop": "Projects with shop", "/agents?q=mac": "Agents with mac",
		"/events?project=shop&q=key": "Events of shop with key", "/projects?q=+": "Projects",
	} {
		s.Get(path).WantText(t, "<title>"+title+" · Switchyard</title>")
	}
}

func TestTheIconOfTheTabShowsTheWorstSignal(t *testing.T) {
	t.Parallel()
	s := newConsoleSite(t)
	s.Get("/").WantText(t, `<link rel="icon" href="/static/icon.`)
	if _, err := s.Projects.Add(t.Context(), "shop", "http://127.0.0.1:3001", nil); err != nil { // its server does not answer
		t.Fatal(err)
	}
	s.Get("/")
	s.Get("/").WantText(t, `<link rel="icon" href="/static/icon-stop.`)
}
