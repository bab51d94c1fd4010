package api_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
)

func TestStoryWithHistoryAndStays(t *testing.T) {
	s := newSite(t)
	s.Add("alpha", gatewaytest.StoryServer(t))
	s.Record("alpha", `{"type":"stage_transition","story_id":"7_pay","story_name":"Pay","from_stage":"1_backlog","to_stage":"2_current","timestamp_ms":1000}`)
	s.Record("alpha", `{"type":"stage_transition","story_id":"8_other","story_name":"Other","from_stage":"1_backlog","to_stage":"2_current","timestamp_ms":1001}`)
	got := s.Send("GET", "/api/gateway/projects/alpha/stories/7_pay", "")
	for _, part := range []string{
		`"project":"alpha","story_id":"7_pay","story_name":"Pay","stage":"2_current","since_ms":1000,"blocked":null,`, `"version":"v1","front_matter":{"a":1},"front_matter_error":null,` +
			`"body":"# Pay","body_cut":false,"criteria":{"done":1,"total":2},"depends_on":[],"waits_for":[],"commits":[],"writable":true,"merges":false,"fault":null,"worktree":null,"branch":null,"tasks":[],"work":[{"branch":"story/7","worktree":null,"head":"` + gatewaytest.StoryHead + `",`, `"stage":null,"conflicts":["a.go"],"merged":false,"link":"name"}],"url":"http`, `"reachable":true,"error":null,"claim":null,"review":null,"history":[{"id":1,"project":"alpha",`,
		`"stays":[{"stage":"2_current","from_ms":1000,"to_ms":null,"blocked_ms":0}]`,
	} {
		if got.StatusCode != 200 || got.Media() != asJSON || !strings.Contains(got.Text, part) {
			t.Errorf("%d %s\nlacks %s", got.StatusCode, got.Text, part)
		}
	}
	if strings.Contains(got.Text, "8_other") {
		t.Errorf("another story's history: %s", got.Text)
	}
}

// TestStoryThatItsProjectServerDoesNotHave: it has left the board, or its server is down, or does not serve stories.
func TestStoryThatItsProjectServerDoesNotHave(t *testing.T) {
	s := newSite(t)
	s.Add("alpha", gatewaytest.StoryServer(t))
	s.Add("away", "http://127.0.0.1:1")
	for _, project := range []string{"alpha", "away"} {
		s.Record(project, `{"type":"merge_failure","story_id":"9_gone","story_name":"Gone","reason":"conflict","timestamp_ms":1000}`)
	}
	got := s.Send("GET", "/api/gateway/projects/alpha/stories/9_gone", "")
	if got.StatusCode != 200 || !strings.Contains(got.Text, `"story_name":"Gone","stage":null,`) || !strings.Contains(got.Text, `"body":null,`) ||
		!strings.Contains(got.Text, `"reachable":true,"error":null,"claim":null,"review":null,"history":[{`) {
		t.Errorf("gone: %d %s", got.StatusCode, got.Text)
	}
	got = s.Send("GET", "/api/gateway/projects/away/stories/9_gone", "")
	if got.StatusCode != 200 || !strings.Contains(got.Text, `"body":null,`) || !strings.Contains(got.Text, `"reachable":false,"error":"connection refused","claim":null,"review":null,"history":[{`) {
		t.Errorf("away: %d %s", got.StatusCode, got.Text)
	}
	s.Add("old", gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText)))
	s.Answered()
	got = s.Send("GET", "/api/gateway/projects/old/stories/7_pay", "")
	if got.StatusCode != 200 || !strings.Contains(got.Text, `"stage":"2_current",`) || !strings.Contains(got.Text, `"merge_failure":"conflict"`) ||
		!strings.Contains(got.Text, `"body":null,`) || !strings.Contains(got.Text, `"reachable":true,"error":"the project server does not show this story"`) {
		t.Errorf("a server with boards only: %d %s", got.StatusCode, got.Text)
	}
	for _, path := range []string{"/api/gateway/projects/old/stories/9_never", "/api/gateway/projects/alpha/stories/1_never", "/api/gateway/projects/away/stories/1_never", "/api/gateway/projects/none/stories/7_pay"} {
		if got := s.Send("GET", path, ""); got.StatusCode != 404 || got.Media() != plainText {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.Text)
		}
	}
}

func TestStoryChangesPassThrough(t *testing.T) {
	s := newSite(t)
	s.Add("alpha", gatewaytest.StoryServer(t))
	s.Add("away", "http://127.0.0.1:1")
	s.Add("old", gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText)))
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
		got := s.Send(test.method, "/api/gateway/projects/"+test.path, test.body)
		if got.StatusCode != test.status || got.Media() != test.media || got.Text != test.want {
			t.Errorf("%s %s %s: %d %s %q", test.method, test.path, test.body, got.StatusCode, got.Media(), got.Text)
		}
	}
}

// TestAChangeThatChangesNothingIsNoAuditEntry: a box is ticked that is, or nothing is blocked that was.
func TestAChangeThatChangesNothingIsNoAuditEntry(t *testing.T) {
	s := newSite(t)
	const story = `{"story_id":"7_pay","stage":"2_current","version":"v1","tasks":[{"line":3,"text":"x","done":true,"optional":false}]}`
	s.Add("alpha", gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText), func(mux *http.ServeMux) {
		mux.HandleFunc("/api/stories/7_pay", gatewaytest.Says(story))
	}))
	for _, change := range []string{`"task":{"line":3,"done":true}`, `"blocked":null`, `"merge_failure":null`, `"other":1`, `"blocked":"why","stage":"2_current"`, `"task":{"line":3,"done":false}`} {
		if got := s.Send("PATCH", "/api/gateway/projects/alpha/stories/7_pay", `{"version":"v1",`+change+`}`); got.StatusCode != 200 {
			t.Errorf("%s: %d %s", change, got.StatusCode, got.Text)
		}
	}
	page, err := s.Audit.Page(t.Context(), domain.AuditQuery{Limit: 9, Action: domain.StoryChanged})
	if err != nil || len(page.Entries) != 3 || page.Entries[0].Detail != "task: line 3 done → line 3 open" ||
		page.Entries[1].Detail != "blocked: none → why" {
		t.Errorf("%+v, %v", page.Entries, err)
	}
}

// TestRequestsThatAGatewayHasPassedOnReachNoProject: a gateway may be registered as its own project, or two as each other's.
func TestRequestsThatAGatewayHasPassedOnReachNoProject(t *testing.T) {
	s := newSite(t)
	s.Add("alpha", gatewaytest.StoryServer(t))
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
		request, err := http.NewRequest(c.method, s.URL+c.path, strings.NewReader(c.body))
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
	s := newSite(t)
	s.Add("alpha", gatewaytest.ProjectServer(t, gatewaytest.Says(`{"project":"x","stages":[{"name":"1_backlog","items":[{"story_id":"77_other","story_name":"Pay 7 times"}]},`+
		`{"name":"2_current","items":[{"story_id":"7_pay","story_name":"Überweisung prüfen"}]}]}`)))
	s.Add("payments", "http://127.0.0.1:1")
	s.Answered()
	s.Record("alpha", `{"type":"merge_failure","story_id":"9_gone","story_name":"Prüfung","reason":"r","timestamp_ms":1000}`)
	s.Record("alpha", `{"type":"merge_failure","story_id":"7_pay","story_name":"Überweisung prüfen","reason":"r","timestamp_ms":1001}`)
	s.Record("alpha", `{"type":"merge_failure","story_id":"77_other","story_name":"Its name before","reason":"r","timestamp_ms":1002}`)
	s.Record("removed", `{"type":"merge_failure","story_id":"7_pay","story_name":"Pay","reason":"r","timestamp_ms":1001}`)
	pay, other := `{"project":"alpha","story_id":"7_pay","story_name":"Überweisung prüfen","stage":"2_current"}`, `{"project":"alpha","story_id":"77_other","story_name":"Pay 7 times","stage":"1_backlog"}`
	gone := `{"project":"alpha","story_id":"9_gone","story_name":"Prüfung","stage":null}`
	found := func(stories, projects string, total ...int) string {
		return fmt.Sprintf(`{"stories":[%s],"projects":[%s],"agents":[],"texts":[],"total":{"stories":%d,"projects":%d,"agents":0,"texts":0}}`, stories, projects, total[0], total[1])
	}
	for query, want := range map[string]string{
		"q=7":                     found(pay+","+other, "", 2, 0),
		"q=7&limit=1":             found(pay, "", 2, 0),
		"q=7&limit=1&offset=1":    found(other, "", 2, 0),
		"q=7&offset=10000":        found("", "", 2, 0),
		"q=UBERWEIS":              found(pay, "", 1, 0),
		"q=pruf":                  found(pay+","+gone, "", 2, 0),
		"q=pr%C3%BCfen+%C3%BCber": found(pay, "", 1, 0),
		"q=pay":                   found(other+","+pay, `{"name":"payments"}`, 2, 1),
		"q=before":                found("", "", 0, 0), // it is on the board, with another name
		"q=nothing":               found("", "", 0, 0),
		"q=%25":                   found("", "", 0, 0),
	} {
		if got := s.Send("GET", "/api/gateway/search?"+query, ""); got.StatusCode != 200 || got.Text != want {
			t.Errorf("%s:\n got %s\nwant %s", query, got.Text, want)
		}
	}
	for _, query := range []string{"", "q=", "q=%20", "q=" + strings.Repeat("x", 201), "q=a&limit=0", "q=a&limit=51", "q=a&limit=x", "q=a&offset=-1", "q=a&offset=10001"} {
		if got := s.Send("GET", "/api/gateway/search?"+query, ""); got.StatusCode != 400 || got.Media() != plainText {
			t.Errorf("%.20s: %d %s", query, got.StatusCode, got.Text)
		}
	}
}

// TestSearchFindsWhatIsInWorkBeforeWhatIsFinished if both match equally well.
func TestSearchFindsWhatIsInWorkBeforeWhatIsFinished(t *testing.T) {
	s := newSite(t)
	s.Add("alpha", gatewaytest.ProjectServer(t, gatewaytest.Says(`{"project":"x","stages":[{"name":"2_current","items":[{"story_id":"2_b","story_name":"Pay again"}]},`+
		`{"name":"5_done","items":[{"story_id":"1_a","story_name":"Pay again"}]},{"name":"6_archived","items":[{"story_id":"3_c","story_name":"Again"}]}]}`)))
	s.Answered()
	want := `{"stories":[{"project":"alpha","story_id":"3_c","story_name":"Again","stage":"6_archived"},` +
		`{"project":"alpha","story_id":"2_b","story_name":"Pay again","stage":"2_current"},` +
		`{"project":"alpha","story_id":"1_a","story_name":"Pay again","stage":"5_done"}],"projects":[],"agents":[],"texts":[],"total":{"stories":3,"projects":0,"agents":0,"texts":0}}`
	if got := s.Send("GET", "/api/gateway/search?q=again", ""); got.Text != want {
		t.Errorf("got %s\nwant %s", got.Text, want)
	}
}

func TestSearchFindsTextsOfAllProjects(t *testing.T) {
	s := newSite(t)
	texts := func(id string, whole bool) func(*http.ServeMux) {
		return func(mux *http.ServeMux) {
			mux.HandleFunc("/api/search", func(w http.ResponseWriter, r *http.Request) {
				if q := r.URL.Query(); q.Get("q") != "pay now" || q.Get("limit") != "3" {
					t.Errorf("asked for %s", r.URL)
				}
				_, _ = fmt.Fprintf(w, `{"total":4,"texts":[{"story_id":%q,"story_name":"N","stage":"2_current","heading":"How","excerpt":"pay now","whole":%t}]}`, id, whole)
			})
		}
	}
	const empty = `{"project":"x","stages":[{"name":"1_backlog","items":[]}]}`
	s.Add("alpha", gatewaytest.ProjectServer(t, gatewaytest.Says(empty), texts("1_a", false)))
	s.Add("beta", gatewaytest.ProjectServer(t, gatewaytest.Says(empty), texts("2_b", true)))
	s.Add("gamma", gatewaytest.ProjectServer(t, gatewaytest.Says(empty)))
	s.Answered()
	text := func(project, id string) string {
		return `{"project":"` + project + `","story_id":"` + id + `","story_name":"N","stage":"2_current","heading":"How","excerpt":"pay now"}`
	}
	want := `{"stories":[],"projects":[],"agents":[],"texts":[` + text("beta", "2_b") + `,` + text("alpha", "1_a") +
		`],"total":{"stories":0,"projects":0,"agents":0,"texts":8}}`
	if got := s.Send("GET", "/api/gateway/search?q=PAY+now&limit=3", ""); got.Text != want {
		t.Errorf("got %s\nwant %s", got.Text, want)
	}
}

// eventOf reads a record of a feed.
