package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// repository is a board whose moves are committed.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository{t, t.TempDir()}
	r.git(time.Now(), "init", "-q", "-b", "main")
	for _, stage := range []string{"1_backlog", "2_current", "3_qa", "5_done"} {
		if err := os.MkdirAll(filepath.Join(r.dir, "work", stage), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r repository) git(at time.Time, args ...string) {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
	date := fmt.Sprintf("%d +0000", at.Unix())
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+r.dir, "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// moves moves stories, which are new where from is "", and commits that.
func (r repository) moves(at time.Time, from, to string, stories ...int) {
	r.t.Helper()
	for _, story := range stories {
		var err error
		path := func(stage string) string { return storyPath(r.dir, stage, story) }
		if from == "" {
			err = os.WriteFile(path(to), nil, 0o644)
		} else {
			err = os.Rename(path(from), path(to))
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	r.git(at, "add", "-A")
	r.git(at, "commit", "-q", "-m", "x")
}

func storyPath(dir, stage string, story int) string {
	return filepath.Join(dir, "work", stage, fmt.Sprintf("%d_story.md", story))
}

func TestThePastFromGitIsThereAtTheFirstLook(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		r, now := newRepository(t), time.Now().Truncate(time.Second)
		ago := func(hours float64) time.Time { return now.Add(-time.Duration(hours * float64(time.Hour))) }
		var stories []int
		for story := range 14 {
			stories = append(stories, story)
		}
		r.moves(ago(100), "", "1_backlog", stories...)
		r.moves(ago(60), "1_backlog", "2_current", stories[:12]...)
		r.moves(ago(58), "2_current", "5_done", stories[:11]...)
		r.moves(ago(3), "1_backlog", "2_current", 12)
		dir := t.TempDir()
		project := start(t, switchyard(t, dir, "project", "--name=alpha", "--work="+filepath.Join(r.dir, "work"), "--listen=127.0.0.1:0"))
		address, err := url.Parse(project.url)
		if err != nil {
			t.Fatal(err)
		}
		var reads atomic.Int64 // of whole histories
		pass := httputil.NewSingleHostReverseProxy(address)
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/history" && r.URL.Query().Get("limit") != "1" && r.URL.Query().Get("after") == "0" {
				reads.Add(1)
			}
			pass.ServeHTTP(w, r)
		}))
		t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
		gateway := func() *process {
			return on.start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data"))
		}
		p := gateway()
		p.do(t, "POST", "/api/gateway/projects", fmt.Sprintf(`{"name":"alpha","url":%q}`, proxy.URL))
		since := func(at time.Time) string { return fmt.Sprintf(`"since_ms":%d`, at.UnixMilli()) }
		check := func() {
			t.Helper()
			p.eventually(t, "/api/gateway/pipeline", since(ago(100)), since(ago(60)), since(ago(58)), since(ago(3)))
			p.eventually(t, "/api/gateway/projects/alpha/stories/3_story", fmt.Sprintf(
				`"stays":[{"stage":"1_backlog","from_ms":%d,"to_ms":%d,"blocked_ms":0},{"stage":"2_current","from_ms":%d,"to_ms":%d,"blocked_ms":0},{"stage":"5_done","from_ms":%d,"to_ms":null,"blocked_ms":0}]`,
				ago(100).UnixMilli(), ago(60).UnixMilli(), ago(60).UnixMilli(), ago(58).UnixMilli(), ago(58).UnixMilli()))
			// Eleven stories took two hours: over four is stuck.
			p.eventually(t, "/api/gateway/attention", `"key":"stuck/alpha/11_story"`, since(ago(56)))
			if _, text := p.do(t, "GET", "/api/gateway/attention", ""); strings.Count(text, `"kind"`) != 1 {
				t.Errorf("attention: %s", text)
			}
		}
		check()
		p.eventually(t, "/projects/alpha", "since "+ago(100).Format("2 Jan")+", from git", `class="day git"`, "by Ada in git")
		if _, text := p.do(t, "GET", "/api/gateway/events", ""); !strings.Contains(text, `"events":[]`) {
			t.Errorf("moves in git became events: %s", text)
		}
		if status, _ := p.stop(t, syscall.SIGTERM); status != 0 {
			t.Errorf("ended with %d: %s", status, &p.stderr)
		}
		p = gateway()
		check()
		// Once this is there, the feed has been followed for long enough.
		r.moves(time.Now(), "2_current", "3_qa", 12)
		p.eventually(t, "/api/gateway/events", `"story_id":"12_story"`)
		if n := reads.Load(); n != 1 && n != 2 { // the second is of the history with this move
			t.Errorf("the history was read %d times", n)
		}
		p.eventually(t, "/api/gateway/projects/alpha/stories/12_story", fmt.Sprintf(`{"stage":"2_current","from_ms":%d,"to_ms":`, ago(3).UnixMilli()))
	})
}

// What git has not seen move is older than what git is read of, not as new as the clone, on both servers; a move ends that.
func TestTheOldestWorkLooksOldest(t *testing.T) {
	r, now := newRepository(t), time.Now()
	ago := func(days int) time.Time { return now.AddDate(0, 0, -days) }
	r.moves(ago(300), "", "1_backlog", 1, 2)
	r.moves(ago(250), "1_backlog", "2_current", 1)
	r.moves(ago(12), "", "1_backlog", 3)
	dir := t.TempDir()
	project := start(t, switchyard(t, dir, "project", "--name=alpha", "--work="+filepath.Join(r.dir, "work"), "--listen=127.0.0.1:0"))
	p := start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data"))
	p.do(t, "POST", "/api/gateway/projects", fmt.Sprintf(`{"name":"alpha","url":%q}`, project.url))
	for _, address := range []struct {
		server *process
		path   string
	}{
		{project, "/api/stories/1_story"},
		{project, "/api/pipeline"},
		{p, "/api/gateway/pipeline"},
		{p, "/api/gateway/projects/alpha/stories/1_story"},
	} {
		address.server.eventually(t, address.path, `"since_at_least":true`, fmt.Sprintf(`"since_ms":%d`, ago(180).Unix()/100_000))
	}
	p.eventually(t, "/projects/alpha", "</span>over <time", ">180")
	p.eventually(t, "/waiting", "over <time", ">180")
	p.eventually(t, "/", "in this stage for over ", ">180")
	p.eventually(t, "/api/gateway/attention", `"key":"stuck/alpha/1_story"`)
	if err := os.Rename(storyPath(r.dir, "2_current", 1), storyPath(r.dir, "3_qa", 1)); err != nil {
		t.Fatal(err)
	}
	p.eventually(t, "/api/gateway/projects/alpha/stories/1_story", `"stage":"3_qa"`)
	if _, text := p.do(t, "GET", "/api/gateway/projects/alpha/stories/1_story", ""); strings.Contains(text, `"since_at_least":true`) {
		t.Error(text)
	}
}
