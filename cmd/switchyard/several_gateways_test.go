package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/pgtest"
	"switchyard/internal/waittest"
	"switchyard/internal/web"
)

// The documented limits are shorter, and are tested in internal/stress. Here other tests use the machine as well.
const (
	takenOver  = 30 * time.Second // after a kill; documented: 5 s
	handedOver = 15 * time.Second // after a stop; 2 s
	answered   = 15 * time.Second // without the database; 3 s
	returned   = 45 * time.Second // once the database is back; 10 s
)

// feedServer is a project server that has only a feed.
type feedServer struct {
	*httptest.Server
	ring *feed.Ring
	said []time.Time // the time of each event
}

func newFeedServer(t *testing.T) *feedServer {
	s := &feedServer{ring: feed.New(time.Now)}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *feedServer) serve(w http.ResponseWriter, r *http.Request) {
	q, err := web.ParseFeedQuery(r)
	if r.URL.Path != "/api/events" || err != nil {
		http.NotFound(w, r)
		return
	}
	snapshot := s.ring.Snapshot()
	for timeout := time.After(q.Wait); q.Wait > 0 && !snapshot.Has(q.Since); snapshot = s.ring.Snapshot() {
		select {
		case <-snapshot.Replaced():
			continue
		case <-timeout:
		case <-r.Context().Done():
		}
		break
	}
	w.Header().Set("Feed-Instance", s.ring.Instance())
	w.Header().Set("Feed-Sequence", snapshot.SequenceText)
	w.Header().Set("Content-Type", "application/json")
	head, tail := snapshot.After(q.Since)
	_, _ = w.Write(append(slices.Clone(head), tail...))
}

// say records a unique event.
func (s *feedServer) say() {
	s.said = append(s.said, time.Now())
	s.ring.Record(feed.Notification{Type: domain.StageTransition, StoryID: strconv.Itoa(len(s.said) - 1), Name: "Story", ToStage: "2_current", FromStage: "1_backlog"})
}

// sharing starts a gateway on a database.
func sharing(t *testing.T, database, name string) *process {
	t.Helper()
	cmd := switchyard(t, filepath.Join(t.TempDir(), name), "gateway", "--listen=localhost:0", "--data=DIR/data", "--poll-interval=100ms")
	cmd.Env = append(cmd.Env, "SWITCHYARD_DATABASE="+database)
	p := start(t, cmd)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s:\n%s", name, &p.stderr)
		}
	})
	return p
}

// awaitStatus waits until a path has this status, and returns how long that took.
func (p *process) awaitStatus(t *testing.T, path string, want int) time.Duration {
	t.Helper()
	began := time.Now()
	waittest.Until(t, fmt.Sprintf("%s answers %d", path, want), func() bool {
		status, _, err := p.ask("GET", path, "")
		return err == nil && status == want
	})
	return time.Since(began)
}

// metric returns an integer from /metrics, 0 if it is missing.
func (p *process) metric(t *testing.T, sample string) (value int) {
	t.Helper()
	_, text := p.do(t, "GET", "/metrics", "")
	for line := range strings.Lines(text) {
		if number, ok := strings.CutPrefix(line, sample+" "); ok {
			value, _ = strconv.Atoi(strings.TrimSpace(number))
		}
	}
	return value
}

// arrivals follows the stream of a gateway and records when each event arrived.
type arrivals struct {
	mu    sync.Mutex
	at    map[string]time.Time // by project and story
	twice []string
}

func (p *process) follow(t *testing.T) *arrivals {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "GET", p.url+"/api/gateway/events/stream?after=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("stream: %v %v", answer, err)
	}
	a := &arrivals{at: map[string]time.Time{}}
	go func() {
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			a.add(data)
		}
	}()
	return a
}

func (a *arrivals) add(data string) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	_, rest, _ := strings.Cut(data, `"project":"`)
	project, _, _ := strings.Cut(rest, `"`)
	_, rest, _ = strings.Cut(data, `"story_id":"`)
	story, _, _ := strings.Cut(rest, `"`)
	key := project + " " + story
	if strings.Contains(data, `"feed_gap"`) {
		key = data
	}
	if _, known := a.at[key]; known {
		a.twice = append(a.twice, key)
	}
	a.at[key] = now
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.at)
}

// latest returns the greatest delay between an event and its arrival, of events recorded since since.
func (a *arrivals) latest(feeds []*feedServer, since time.Time) (most time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, f := range feeds {
		for n, said := range f.said {
			if said.After(since) {
				most = max(most, a.at[fmt.Sprintf("p%d %d", i, n)].Sub(said))
			}
		}
	}
	return most
}

func TestTwoGatewaysOnOnePostgreSQL(t *testing.T) {
	t.Parallel()
	server := pgtest.Own(t)
	database, err := server.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	one, other := sharing(t, database, "one"), sharing(t, database, "other")
	one.awaitStatus(t, "/readyz", 200)
	other.awaitStatus(t, "/readyz", 200)
	var feeds []*feedServer
	for i := range 6 {
		feeds = append(feeds, newFeedServer(t))
		remote{t, one.url}.register(fmt.Sprint("p", i), feeds[i].URL)
	}
	said := 0
	sayAll := func() {
		for _, f := range feeds {
			f.say()
			said++
		}
	}
	byOne, byOther := one.follow(t), other.follow(t)
	all := func(a *arrivals) func() bool { return func() bool { return a.count() >= said } }

	sayAll()
	waittest.Until(t, "both have what came first", func() bool { return all(byOne)() && all(byOther)() })
	for range 60 {
		sayAll()
		waittest.Until(t, "both have everything", func() bool { return all(byOne)() && all(byOther)() })
	}
	var apart []time.Duration
	for key, at := range byOne.at {
		apart = append(apart, at.Sub(byOther.at[key]).Abs())
	}
	slices.Sort(apart)
	t.Logf("append → other gateway: median %v, p99 %v of %d", apart[len(apart)/2], apart[len(apart)*99/100], len(apart))

	waittest.Until(t, "each event and each feed is counted by one gateway", func() bool {
		total := func(sample string) int { return one.metric(t, sample) + other.metric(t, sample) }
		return total(`switchyard_events_total{type="stage_transition"}`) == said && total(`switchyard_upstream_projects{kind="feed",state="up"}`) == len(feeds)
	})

	// The first gateway is killed while events arrive.
	for range 20 {
		sayAll()
	}
	one.Process.Kill()
	killed := time.Now()
	for range 100 {
		sayAll()
	}
	waittest.Until(t, "the other one has everything", all(byOther))
	took := byOther.latest(feeds, killed)
	t.Logf("after a kill: nothing arrived later than %v", took)
	if took > takenOver {
		t.Errorf("took over after %v", took)
	}

	// PostgreSQL is stopped and restarted.
	server.Stop()
	t.Logf("not ready after %v", other.awaitStatus(t, "/readyz", 503))
	other.awaitStatus(t, "/api/gateway/events", 503)
	for path, want := range map[string]int{
		"/healthz": 200, "/api/gateway": 200, "/api/gateway/pipeline": 200, "/gateway/agents": 200, "/": 200, "/projects": 200, "/projects/p1": 200,
		"/agents": 200, "/events": 503, "/api/gateway/attention": 200, "/metrics": 200,
	} {
		began := time.Now()
		status, text := other.do(t, "GET", path, "")
		if took := time.Since(began); status != want || took > answered {
			t.Errorf("without the database GET %s: %d, want %d, after %v\n%.300s", path, status, want, took, text)
		}
	}
	if _, text := other.do(t, "GET", "/", ""); !strings.Contains(text, "as of ") {
		t.Error("the page does not say as of when it is")
	}
	for _, c := range [][2]string{
		{"/api/gateway/switch", `{"project":"p2"}`}, {"/api/gateway/projects", `{"name":"new","url":"http://127.0.0.1:9"}`}, {"/gateway/tokens", ``},
	} {
		if status, text := other.do(t, "POST", c[0], c[1]); status != 503 {
			t.Errorf("without the database POST %s: %d %s", c[0], status, text)
		}
	}
	third := sharing(t, strings.Replace(database, "postgres@", "postgres:canary@", 1), "third")
	if status, _ := third.do(t, "GET", "/healthz", ""); status != 200 {
		t.Error("a gateway that starts without the database does not serve")
	}
	if status, text := third.do(t, "GET", "/readyz", ""); status != 503 || text == "" || strings.Contains(text, "canary") {
		t.Errorf("a gateway that starts without the database is ready: %d %q", status, text)
	}
	for range 10 {
		sayAll()
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	other.awaitStatus(t, "/readyz", 200)
	third.awaitStatus(t, "/readyz", 200)
	waittest.Until(t, "what was said without the database is there", all(byOther))
	t.Logf("PostgreSQL is back: everything after %v", time.Since(began))
	if took := time.Since(began); took > returned {
		t.Errorf("took %v after PostgreSQL came back", took)
	}

	if text := third.stderr.String(); text == "" || strings.Contains(text, "canary") {
		t.Errorf("the log shows the database's password, or nothing: %s", text)
	}

	// A stopped gateway hands over at once.
	byThird := third.follow(t)
	if status, _ := other.stop(t, syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d: %s", status, &other.stderr)
	}
	began = time.Now()
	sayAll()
	waittest.Until(t, "the last one follows all feeds", all(byThird))
	t.Logf("after a stop: everything within %v", time.Since(began))
	if took := time.Since(began); took > handedOver {
		t.Errorf("took over after %v", took)
	}
	if n := byThird.count(); n != said || len(byThird.twice) > 0 || len(byOther.twice) > 0 {
		t.Errorf("%d events of %d; twice: %v %v", n, said, byThird.twice, byOther.twice)
	}
}

// TestAppendsThatFailAreSaidSteadily: the role may do everything but store events. Readiness says so until it may, the log
// once, and the gateway that does not lead shows it.
func TestAppendsThatFailAreSaidSteadily(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	role := pgtest.Writer(t, database)
	leader := sharing(t, strings.Replace(database, "postgres@", role+"@", 1), "leader")
	waittest.Until(t, "it leads", func() bool { return leader.metric(t, "switchyard_leader") == 1 })
	other := sharing(t, database, "other")
	other.awaitStatus(t, "/readyz", 200)
	feed := newFeedServer(t)
	remote{t, leader.url}.register("alpha", feed.URL)
	count := func() int {
		_, text := leader.do(t, "GET", "/api/gateway/events", "")
		return strings.Count(text, `"story_id"`)
	}
	feed.say()
	waittest.Until(t, "the first event is stored", func() bool { return count() == 1 })

	pgtest.Execute(t, database, "REVOKE INSERT ON events FROM "+role)
	feed.say()
	leader.awaitStatus(t, "/readyz", 503)
	for began := time.Now(); time.Since(began) < 3*time.Second; {
		if status, text := leader.do(t, "GET", "/readyz", ""); status != 503 || !strings.Contains(text, "required privilege") {
			t.Fatalf("readiness: %d, %s", status, text)
		}
	}
	waittest.Until(t, "the other gateway shows it", func() bool {
		_, text := other.do(t, "GET", "/api/gateway/attention", "")
		return strings.Contains(text, "store_failed") && strings.Contains(text, "required privilege")
	})
	if n := leader.stderr.Count("does not accept writes"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	pgtest.Execute(t, database, "GRANT INSERT ON events TO "+role)
	leader.awaitStatus(t, "/readyz", 200)
	waittest.Until(t, "the second event is stored", func() bool { return count() == 2 })
}
