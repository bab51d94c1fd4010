package handlers_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"switchyard/internal/domain"
)

// storyServer is a project server with one story, 7_pay, which refuses stale versions.
func storyServer(t *testing.T) string {
	return upstreamServer(t, says(boardText), func(mux *http.ServeMux) {
		mux.HandleFunc("GET /api/stories/7_pay", says(`{"project":"x","story_id":"7_pay","story_name":"Pay","stage":"2_current","since_ms":5,`+
			`"blocked":null,"version":"v1","front_matter":{"a":1},"body":"# Pay","criteria":{"done":1,"total":2},"commits":[],"writable":true}`))
		mux.HandleFunc("PATCH /api/stories/7_pay", func(w http.ResponseWriter, r *http.Request) {
			var text [100]byte
			n, _ := r.Body.Read(text[:])
			if string(text[:n]) != `{"version":"v1","stage":"3_qa"}` {
				http.Error(w, "the story has changed", http.StatusConflict)
				return
			}
			fmt.Fprint(w, `{"story_id":"7_pay","stage":"3_qa"}`)
		})
		mux.HandleFunc("POST /api/stories", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"story_id":"8_new"}`)
		})
	})
}

func TestStoryWithHistoryAndStays(t *testing.T) {
	s := newAPISite(t)
	s.add("alpha", storyServer(t))
	s.record("alpha", eventOf(t, `{"type":"stage_transition","story_id":"7_pay","story_name":"Pay","from_stage":"1_backlog","to_stage":"2_current","timestamp_ms":1000}`))
	s.record("alpha", eventOf(t, `{"type":"stage_transition","story_id":"8_other","story_name":"Other","from_stage":"1_backlog","to_stage":"2_current","timestamp_ms":1001}`))
	got := s.send("GET", "/api/gateway/projects/alpha/stories/7_pay", "")
	for _, part := range []string{
		`"project":"alpha","story_id":"7_pay","story_name":"Pay","stage":"2_current","since_ms":1000,"blocked":null,`, `"version":"v1","front_matter":{"a":1},"front_matter_error":null,` +
			`"body":"# Pay","body_cut":false,"criteria":{"done":1,"total":2},"commits":[],"writable":true,"url":"http`, `"reachable":true,"error":null,"history":[{"id":1,"project":"alpha",`,
		`"stays":[{"stage":"2_current","from_ms":1000,"to_ms":null,"blocked_ms":0}]`,
	} {
		if got.status != 200 || got.media != asJSON || !strings.Contains(got.body, part) {
			t.Errorf("%d %s\nlacks %s", got.status, got.body, part)
		}
	}
	if strings.Contains(got.body, "8_other") {
		t.Errorf("another story's history: %s", got.body)
	}
}

// TestStoryThatItsProjectServerDoesNotHave: it has left the board, or its server is down, or does not serve stories.
func TestStoryThatItsProjectServerDoesNotHave(t *testing.T) {
	s := newAPISite(t)
	s.add("alpha", storyServer(t))
	s.add("away", "http://127.0.0.1:1")
	for _, project := range []string{"alpha", "away"} {
		s.record(project, eventOf(t, `{"type":"merge_failure","story_id":"9_gone","story_name":"Gone","reason":"conflict","timestamp_ms":1000}`))
	}
	got := s.send("GET", "/api/gateway/projects/alpha/stories/9_gone", "")
	if got.status != 200 || !strings.Contains(got.body, `"story_name":"Gone","stage":null,`) || !strings.Contains(got.body, `"body":null,`) ||
		!strings.Contains(got.body, `"reachable":true,"error":null,"history":[{`) {
		t.Errorf("gone: %d %s", got.status, got.body)
	}
	got = s.send("GET", "/api/gateway/projects/away/stories/9_gone", "")
	if got.status != 200 || !strings.Contains(got.body, `"body":null,`) || !strings.Contains(got.body, `"reachable":false,"error":"connection refused","history":[{`) {
		t.Errorf("away: %d %s", got.status, got.body)
	}
	s.add("old", upstreamServer(t, says(boardText)))
	answered(t, s.Service)
	got = s.send("GET", "/api/gateway/projects/old/stories/7_pay", "")
	if got.status != 200 || !strings.Contains(got.body, `"stage":"2_current",`) || !strings.Contains(got.body, `"merge_failure":"conflict"`) ||
		!strings.Contains(got.body, `"body":null,`) || !strings.Contains(got.body, `"reachable":true,"error":"the project server shows no single stories"`) {
		t.Errorf("a server with boards only: %d %s", got.status, got.body)
	}
	for _, path := range []string{"/api/gateway/projects/old/stories/9_never", "/api/gateway/projects/alpha/stories/1_never", "/api/gateway/projects/away/stories/1_never", "/api/gateway/projects/none/stories/7_pay"} {
		if got := s.send("GET", path, ""); got.status != 404 || got.media != plainText {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

func TestStoryChangesPassThrough(t *testing.T) {
	s := newAPISite(t)
	s.add("alpha", storyServer(t))
	s.add("away", "http://127.0.0.1:1")
	s.add("old", upstreamServer(t, says(boardText)))
	const story = "/stories/7_pay"
	for _, test := range []struct {
		method, path, body string
		status             int
		media, want        string
	}{
		{"PATCH", "alpha" + story, `{"version":"v1","stage":"3_qa"}`, 200, asJSON, `{"story_id":"7_pay","stage":"3_qa"}`},
		{"PATCH", "alpha" + story, `{"version":"v0"}`, 409, plainText, "the story has changed\n"},
		{"POST", "alpha/stories", `{"name":"New"}`, 201, asJSON, `{"story_id":"8_new"}`},
		{"PATCH", "away" + story, `{"version":"v1"}`, 502, plainText, "connection refused"},
		{"POST", "away/stories", `{"name":"New"}`, 502, plainText, "connection refused"},
		{"PATCH", "none" + story, `{"version":"v1"}`, 404, plainText, "project 'none' does not exist"},
		{"PATCH", "alpha" + story, ``, 400, plainText, "a JSON body is required"},
		{"PATCH", "alpha" + story, `[]`, 400, plainText, "the body must be one JSON object"},
		{"PATCH", "old" + story, `{"version":"v1"}`, 404, plainText, "404 page not found\n"},
	} {
		got := s.send(test.method, "/api/gateway/projects/"+test.path, test.body)
		if got.status != test.status || got.media != test.media || got.body != test.want {
			t.Errorf("%s %s %s: %d %s %q", test.method, test.path, test.body, got.status, got.media, got.body)
		}
	}
}

// TestRequestsThatAGatewayHasPassedOnReachNoProject: a gateway may be registered as its own project, or two as each other's.
func TestRequestsThatAGatewayHasPassedOnReachNoProject(t *testing.T) {
	s := newAPISite(t)
	s.add("alpha", storyServer(t))
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/api/gateway/projects/alpha/stories/7_pay", "", 508},
		{"PATCH", "/api/gateway/projects/alpha/stories/7_pay", `{"blocked":"no"}`, 508},
		{"POST", "/api/gateway/projects/alpha/stories", `{"name":"a"}`, 508},
		{"GET", "/api/events", "", 404},
		{"GET", "/api/gateway/events", "", 200},
	} {
		request, err := http.NewRequest(c.method, s.url+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Content-Type": {asJSON}, domain.HopHeader: {"1"}}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != c.status || c.status == 508 && !strings.Contains(string(text), "came through a gateway already") {
			t.Errorf("%s %s: %d %s", c.method, c.path, response.StatusCode, text)
		}
	}
}

func TestSearch(t *testing.T) {
	s := newAPISite(t)
	s.add("alpha", upstreamServer(t, says(`{"project":"x","stages":[{"name":"1_backlog","items":[{"story_id":"77_other","story_name":"Pay 7 times"}]},`+
		`{"name":"2_current","items":[{"story_id":"7_pay","story_name":"Überweisung prüfen"}]}]}`)))
	s.add("payments", "http://127.0.0.1:1")
	answered(t, s.Service)
	s.record("alpha", eventOf(t, `{"type":"merge_failure","story_id":"9_gone","story_name":"Prüfung","reason":"r","timestamp_ms":1000}`))
	s.record("alpha", eventOf(t, `{"type":"merge_failure","story_id":"7_pay","story_name":"Überweisung prüfen","reason":"r","timestamp_ms":1001}`))
	s.record("alpha", eventOf(t, `{"type":"merge_failure","story_id":"77_other","story_name":"Its name before","reason":"r","timestamp_ms":1002}`))
	s.record("removed", eventOf(t, `{"type":"merge_failure","story_id":"7_pay","story_name":"Pay","reason":"r","timestamp_ms":1001}`))
	pay, other := `{"project":"alpha","story_id":"7_pay","story_name":"Überweisung prüfen","stage":"2_current"}`, `{"project":"alpha","story_id":"77_other","story_name":"Pay 7 times","stage":"1_backlog"}`
	gone := `{"project":"alpha","story_id":"9_gone","story_name":"Prüfung","stage":null}`
	for query, want := range map[string]string{
		"q=7":                     `{"stories":[` + pay + `,` + other + `],"projects":[],"agents":[]}`,
		"q=7&limit=1":             `{"stories":[` + pay + `],"projects":[],"agents":[]}`,
		"q=UBERWEIS":              `{"stories":[` + pay + `],"projects":[],"agents":[]}`,
		"q=pruf":                  `{"stories":[` + pay + `,` + gone + `],"projects":[],"agents":[]}`,
		"q=pr%C3%BCfen+%C3%BCber": `{"stories":[` + pay + `],"projects":[],"agents":[]}`,
		"q=pay":                   `{"stories":[` + other + `,` + pay + `],"projects":[{"name":"payments"}],"agents":[]}`,
		"q=before":                `{"stories":[],"projects":[],"agents":[]}`, // it is on the board, with another name
		"q=nothing":               `{"stories":[],"projects":[],"agents":[]}`,
		"q=%25":                   `{"stories":[],"projects":[],"agents":[]}`,
	} {
		if got := s.send("GET", "/api/gateway/search?"+query, ""); got.status != 200 || got.body != want {
			t.Errorf("%s:\n got %s\nwant %s", query, got.body, want)
		}
	}
	for _, query := range []string{"", "q=", "q=%20", "q=" + strings.Repeat("x", 201), "q=a&limit=0", "q=a&limit=51", "q=a&limit=x"} {
		if got := s.send("GET", "/api/gateway/search?"+query, ""); got.status != 400 || got.media != plainText {
			t.Errorf("%.20s: %d %s", query, got.status, got.body)
		}
	}
}

// TestSearchFindsWhatIsInWorkBeforeWhatWasArchived if both match equally well.
func TestSearchFindsWhatIsInWorkBeforeWhatWasArchived(t *testing.T) {
	s := newAPISite(t)
	s.add("alpha", upstreamServer(t, says(`{"project":"x","stages":[{"name":"2_current","items":[{"story_id":"2_b","story_name":"Pay again"}]},`+
		`{"name":"5_done","items":[]},{"name":"6_archived","items":[{"story_id":"1_a","story_name":"Pay again"},{"story_id":"3_c","story_name":"Again"}]}]}`)))
	answered(t, s.Service)
	want := `{"stories":[{"project":"alpha","story_id":"3_c","story_name":"Again","stage":"6_archived"},` +
		`{"project":"alpha","story_id":"2_b","story_name":"Pay again","stage":"2_current"},` +
		`{"project":"alpha","story_id":"1_a","story_name":"Pay again","stage":"6_archived"}],"projects":[],"agents":[]}`
	if got := s.send("GET", "/api/gateway/search?q=again", ""); got.body != want {
		t.Errorf("got %s\nwant %s", got.body, want)
	}
}

// eventOf reads a record of a feed.
func eventOf(t testing.TB, text string) domain.Record {
	t.Helper()
	record, err := domain.ParseRecord(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return record
}
