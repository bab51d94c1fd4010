package projectserver_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	workboard "switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/gitlog"
	"switchyard/internal/projectserver"
	"switchyard/internal/web"
)

// standing is a board whose view tests set.
type standing struct {
	projectserver.Board // for methods that tests do not call
	view                atomic.Pointer[workboard.View]
}

func (s *standing) View() *workboard.View { return s.view.Load() }

func (s *standing) Layout() string { return "stages" }
func (s *standing) Path() string   { return "work" }
func (s *standing) Writable() bool { return false }

func (s *standing) set(stages ...workboard.Stage) {
	s.view.Store(&workboard.View{Stages: stages, Version: rand.Text()})
}

// projectServer is a project server without a directory, and with a fixed clock.
type projectServer struct {
	*standing
	feed    *feed.Ring
	handler http.Handler
}

func newProject(token domain.Secret) *projectServer {
	p := &projectServer{
		standing: &standing{},
		feed:     feed.New(func() time.Time { return time.UnixMilli(1000) }),
	}
	p.set()
	p.handler = projectserver.Server{
		Name: "alpha", Board: p, Feed: p.feed, Token: token,
		Commits:    noRepository{committed{&gitlog.Moves{ID: "none", Complete: true}}},
		AllowHosts: []string{"builder.example"}, Log: slog.New(slog.DiscardHandler),
	}.Handler()
	return p
}

func (p *projectServer) record(n int) {
	for i := range n {
		p.feed.Record(feed.Notification{Type: domain.StageTransition, StoryID: fmt.Sprint(i), Name: "Story", FromStage: "2_current", ToStage: "3_qa"})
	}
}

// ask sends a request with headers given as "Name: value".
func (p *projectServer) ask(method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "localhost:3001"
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w
}

func count(t *testing.T, body io.Reader) int {
	t.Helper()
	var events []json.RawMessage
	if err := json.NewDecoder(body).Decode(&events); err != nil {
		t.Fatal(err)
	}
	return len(events)
}

func TestTheFeedAnswersWhatIsNewerThanSince(t *testing.T) {
	p := newProject("")
	p.record(502) // stamped 1000 to 1501; the first that is kept is 1002
	for query, want := range map[string]int{
		"": 500, "?": 500, "?since=0": 500, "?since=1001": 500, "?since=1002": 499, "?since=1500": 1, "?since=1501": 0,
		"?since=18446744073709551615": 0, "?since=9223372036854775808": 0, "?since=007": 500, "?other=x&since=1500": 1,
		"?since=1500&since=0": 1, "?%73ince=15%300": 1, "?since=1500&wait=0": 1, "?wait=1h&since=1500": 1, "?wait=0s&since=1501": 0,
	} {
		w := p.ask("GET", "/api/events"+query)
		if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Feed-Sequence") != "502" ||
			w.Header().Get("Feed-Instance") != p.feed.Instance() || w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) {
			t.Errorf("%s: %d %v", query, w.Code, w.Header())
		}
		if got := count(t, w.Body); got != want {
			t.Errorf("%s: %d events, want %d", query, got, want)
		}
	}
}

func TestAnEmptyFeedIsAnEmptyArray(t *testing.T) {
	w := newProject("").ask("GET", "/api/events")
	if w.Code != 200 || w.Body.String() != "[]" || w.Header().Get("Feed-Sequence") != "0" || w.Header().Get("Feed-Instance") == "" {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
}

func TestAMalformedQueryOfTheFeedIsRefused(t *testing.T) {
	p := newProject("")
	p.record(1)
	for query, names := range map[string]string{
		"since=":                     "since",
		"since":                      "since",
		"since=x":                    "since",
		"since=-1":                   "since",
		"since=+1":                   "since",
		"since=%2B1":                 "since",
		"since=1.0":                  "since",
		"since=1e3":                  "since",
		"since=0x10":                 "since",
		"since=1_000":                "since",
		"since=%201":                 "since",
		"since=18446744073709551616": "since",
		"since=%zz":                  "query",
		"since=1;wait=2s":            "query",
		"wait=":                      "wait",
		"wait=10":                    "wait",
		"wait=-1s":                   "wait",
		"wait=soon":                  "wait",
		"wait=NaNs":                  "wait",
		"since=0&wait=x":             "wait",
	} {
		w := p.ask("GET", "/api/events?"+query)
		if w.Code != 400 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") || !strings.Contains(w.Body.String(), names) {
			t.Errorf("%s: %d %s %q", query, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
		if w.Header().Get("Feed-Instance") == "" || w.Header().Get("Feed-Sequence") != "1" || w.Header().Get(version) == "" {
			t.Errorf("%s: headers %v", query, w.Header())
		}
	}
}

// inVirtualTime sends a request in a synctest bubble, and returns the answer and how long it took.
func inVirtualTime(t *testing.T, query string, during func(p *projectServer, stop context.CancelFunc)) (body string, took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		p := newProject("")
		p.record(1)
		stopping, stop := context.WithCancel(t.Context())
		r := httptest.NewRequest("GET", "http://localhost/api/events"+query, nil)
		r = r.WithContext(web.WithStopping(t.Context(), stopping))
		w := httptest.NewRecorder()
		began := time.Now()
		var done sync.WaitGroup
		done.Go(func() { p.handler.ServeHTTP(w, r); took = time.Since(began) })
		synctest.Wait()
		during(p, stop)
		done.Wait()
		stop()
		if w.Code != 200 || w.Header().Get("Feed-Sequence") == "" || w.Header().Get("Feed-Instance") == "" {
			t.Errorf("%s: %d %v", query, w.Code, w.Header())
		}
		body = w.Body.String()
	})
	return body, took
}

func TestWaitingForNews(t *testing.T) {
	nothing := func(*projectServer, context.CancelFunc) {}
	for name, test := range map[string]struct {
		query  string
		during func(p *projectServer, stop context.CancelFunc)
		events int
		took   time.Duration
	}{
		"nothing comes":                 {"?since=1000&wait=1m30s", nothing, 0, time.Minute},
		"for as long as asked":          {"?since=1000&wait=10s", nothing, 0, 10 * time.Second},
		"no longer than a minute":       {"?since=1000&wait=24h", nothing, 0, time.Minute},
		"there is something already":    {"?since=999&wait=10s", nothing, 1, 0},
		"without wait":                  {"?since=1000", nothing, 0, 0},
		"what comes is not newer still": {"?since=1002&wait=10s", func(p *projectServer, _ context.CancelFunc) { p.record(2) }, 0, 10 * time.Second},
		"far ahead of the feed":         {fmt.Sprintf("?since=%d&wait=10s", uint64(math.MaxUint64)), func(p *projectServer, _ context.CancelFunc) { p.record(9) }, 0, 10 * time.Second},
		"something comes": {"?since=1000&wait=10s", func(p *projectServer, _ context.CancelFunc) {
			<-time.After(3 * time.Second)
			p.record(1)
		}, 1, 3 * time.Second},
		"the server stops": {"?since=1000&wait=10s", func(_ *projectServer, stop context.CancelFunc) {
			<-time.After(2 * time.Second)
			stop()
		}, 0, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			body, took := inVirtualTime(t, test.query, test.during)
			if got := count(t, strings.NewReader(body)); got != test.events || took != test.took {
				t.Errorf("%d events after %v, want %d after %v", got, took, test.events, test.took)
			}
		})
	}
}

func TestAThousandReadersWaitAndAllGetTheEvent(t *testing.T) {
	p := newProject("")
	server := httptest.NewServer(p.handler)
	defer server.Close()
	const readers = 1000
	var ready, done sync.WaitGroup
	ready.Add(readers)
	failures := make(chan error, readers)
	for range readers {
		done.Go(func() {
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err == nil {
				_, err = io.WriteString(conn, "GET /api/events?wait=30s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			}
			ready.Done()
			if err != nil {
				failures <- err
				return
			}
			defer conn.Close()
			if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), `"story_id":"0"`) {
				failures <- fmt.Errorf("%q, %w", answer, err)
			}
		})
	}
	ready.Wait()
	p.record(1)
	done.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
}

func TestThePipelineShowsTheBoardAndRevalidates(t *testing.T) {
	p := newProject("")
	reason := "waiting: <key> & more"
	p.set(workboard.Stage{Name: "1_backlog"}, workboard.Stage{Name: "2_current", Stories: []workboard.Story{
		{ID: "7_login", Name: "Log in", Blocked: reason, Since: time.UnixMilli(5)},
	}})
	w := p.ask("GET", "/api/pipeline")
	want := `{"project":"alpha","layout":"stages","path":"work","stages":[{"name":"1_backlog","items":[]},{"name":"2_current","items":[` +
		`{"story_id":"7_login","story_name":"Log in","blocked":"waiting: <key> & more","merge_failure":null,"since_ms":5,"criteria":null,` +
		`"depends_on":[],"waits_for":[],"fault":null,"worktree":null,"branch":null,"work":null}]}],"faults":[],"base":null,"worktrees":[]}`
	if w.Code != 200 || w.Body.String() != want || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	tag := w.Header().Get("ETag")
	for _, sent := range []string{tag, `"other", ` + tag, "W/" + tag} {
		if w := p.ask("GET", "/api/pipeline", "If-None-Match: "+sent); w.Code != 304 || w.Body.Len() > 0 || w.Header().Get("ETag") != tag {
			t.Errorf("If-None-Match %s: %d %s", sent, w.Code, w.Body)
		}
	}
	p.set(workboard.Stage{Name: "1_backlog"})
	if w := p.ask("GET", "/api/pipeline", "If-None-Match: "+tag); w.Code != 200 || w.Header().Get("ETag") == tag {
		t.Errorf("after a change: %d, tag %s", w.Code, w.Header().Get("ETag"))
	}
}

func TestAWorkDirectoryThatIsGoneIsUnavailableWithItsReason(t *testing.T) {
	p := newProject("")
	_, err := os.ReadDir("/nowhere/in/particular")
	p.view.Store(&workboard.View{Stages: p.View().Stages, Err: err})
	w := p.ask("GET", "/api/pipeline")
	if want := "the work directory cannot be read: no such file or directory"; w.Code != 503 || w.Body.String() != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	p.set()
	if w := p.ask("GET", "/api/pipeline"); w.Code != 200 {
		t.Errorf("the directory is back: %d %s", w.Code, w.Body)
	}
}

func TestAccessToAProjectServer(t *testing.T) {
	const right = "Authorization: Bearer s3cret"
	for name, test := range map[string]struct {
		token          domain.Secret
		method, target string
		headers        []string
		status         int
		allow          string
	}{
		"open":                            {"", "GET", "/api/events", nil, 200, ""},
		"a token that nobody asks for":    {"", "GET", "/api/events", []string{right}, 200, ""},
		"health":                          {"", "GET", "/healthz", nil, 200, ""},
		"HEAD":                            {"", "HEAD", "/api/events", nil, 200, ""},
		"another method":                  {"", "POST", "/api/events", nil, 405, "GET, HEAD"},
		"another method of the pipeline":  {"", "DELETE", "/api/pipeline", nil, 405, "GET, HEAD"},
		"another path":                    {"", "GET", "/api/other", nil, 404, ""},
		"the root":                        {"", "GET", "/", nil, 404, ""},
		"a slash too many":                {"", "GET", "/api/events/", nil, 404, ""},
		"the right token":                 {"s3cret", "GET", "/api/events", []string{right}, 200, ""},
		"the scheme in lower case":        {"s3cret", "GET", "/api/events", []string{"Authorization: bearer s3cret"}, 200, ""},
		"no token":                        {"s3cret", "GET", "/api/events", nil, 401, ""},
		"no token, pipeline":              {"s3cret", "GET", "/api/pipeline", nil, 401, ""},
		"a wrong token":                   {"s3cret", "GET", "/api/events", []string{"Authorization: Bearer s3cre"}, 401, ""},
		"an empty token":                  {"s3cret", "GET", "/api/events", []string{"Authorization: Bearer "}, 401, ""},
		"another scheme":                  {"s3cret", "GET", "/api/events", []string{"Authorization: Basic s3cret"}, 401, ""},
		"health without a token":          {"s3cret", "GET", "/healthz", nil, 200, ""},
		"401 before 404":                  {"s3cret", "GET", "/nosuch", nil, 401, ""},
		"401 before 405":                  {"s3cret", "POST", "/api/events", nil, 401, ""},
		"401 before 400":                  {"s3cret", "GET", "/api/events?since=x", nil, 401, ""},
		"404 with the token":              {"s3cret", "GET", "/nosuch", []string{right}, 404, ""},
		"a foreign host":                  {"", "GET", "/api/events", []string{"Host: evil.test"}, 403, ""},
		"a foreign host, health":          {"", "GET", "/healthz", []string{"Host: evil.test"}, 403, ""},
		"a foreign host before the token": {"s3cret", "GET", "/api/events", []string{"Host: evil.test"}, 403, ""},
		"a foreign host in the address":   {"", "GET", "http://evil.test/api/events", []string{"Host: evil.test"}, 403, ""},
		"an allowed host":                 {"", "GET", "/api/events", []string{"Host: Builder.example:3001"}, 200, ""},
		"an address":                      {"", "GET", "/api/events", []string{"Host: 192.0.2.1:3001"}, 200, ""},
		"a write from another site":       {"", "POST", "/api/events", []string{"Sec-Fetch-Site: cross-site"}, 403, ""},
		"a read from another site":        {"", "GET", "/api/events", []string{"Sec-Fetch-Site: cross-site"}, 403, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(test.token)
			w := p.ask(test.method, test.target, test.headers...)
			if w.Code != test.status || w.Header().Get("Allow") != test.allow {
				t.Errorf("status %d, Allow %q", w.Code, w.Header().Get("Allow"))
			}
			if w.Code >= 400 && !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
				t.Errorf("Content-Type %s", w.Header().Get("Content-Type"))
			}
			if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("headers %v", w.Header())
			}
			if strings.Contains(w.Body.String(), "s3cret") || (w.Code == 401) != (w.Header().Get("WWW-Authenticate") == "Bearer") {
				t.Errorf("%v %s", w.Header(), w.Body)
			}
		})
	}
}
