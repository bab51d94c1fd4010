package projectserver_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/feed"
	"switchyard/internal/gitlog"
	"switchyard/internal/projectserver"
	"switchyard/internal/waittest"
)

// stories is a project server with a real work directory, which is scanned as in production.
type stories struct {
	t       *testing.T
	dir     string
	handler http.Handler
	feed    *feed.Ring
	trees   bool // of the repository are read, and branches
}

func newStories(t *testing.T, allowWrites bool, files map[string]string) *stories {
	t.Helper()
	s := &stories{t: t, dir: t.TempDir(), feed: feed.New(time.Now)}
	for path, content := range files {
		s.write(path, content)
	}
	s.open(s.dir, allowWrites)
	return s
}

func (s *stories) open(dir string, allowWrites bool) {
	s.t.Helper()
	s.openBoard(board.Options{Dir: dir, AllowWrites: allowWrites})
}

func (s *stories) openBoard(o board.Options) {
	s.t.Helper()
	log, dir := slog.New(slog.DiscardHandler), o.Dir
	o.Log, o.Record = log, s.feed.Record
	var places *gitlog.Work
	o.Refresh = func(ctx context.Context) { places.Refresh(ctx) }
	work, err := board.Open(o)
	if err != nil {
		s.t.Fatal(err)
	}
	commits := gitlog.New(gitlog.Options{Dir: dir, Board: work, Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	runs := []func(context.Context) error{work.Run, commits.Run}
	server := projectserver.Server{Name: "alpha", Board: work, Feed: s.feed, Commits: commits, Log: log}
	if s.trees {
		places = gitlog.NewWork(commits, work, true)
		server.Work, runs = places, append(runs, places.Run)
	}
	for _, run := range runs {
		running.Go(func() { _ = run(ctx) })
	}
	s.t.Cleanup(func() { cancel(); running.Wait() })
	s.handler = server.Handler()
}

// write writes a file atomically, so that no scan sees it half written.
func (s *stories) write(path, content string) {
	s.t.Helper()
	path = filepath.Join(s.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		s.t.Fatal(err)
	}
	written := filepath.Join(s.t.TempDir(), "written")
	if err := os.WriteFile(written, []byte(content), 0o666); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(written, path); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stories) ask(method, target, body string) (status int, answer string, header http.Header) {
	s.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, reader)
	r.Host = "localhost:3001"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header()
}

// story returns the answer to a request, which must succeed.
func (s *stories) story(method, target, body string) map[string]any {
	s.t.Helper()
	status, answer, _ := s.ask(method, target, body)
	var story map[string]any
	if err := json.Unmarshal([]byte(answer), &story); err != nil || status >= 300 {
		s.t.Fatalf("%s %s: %d %s", method, target, status, answer)
	}
	return story
}

func (s *stories) version(id string) string {
	s.t.Helper()
	return s.story("GET", "/api/stories/"+id, "")["version"].(string)
}

func encode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAStoryIsAnsweredInFull(t *testing.T) {
	s := newStories(t, false, map[string]string{
		"2_current/7_login.md": "---\nname: Log <in>\nblocked: true\nblocked_reason: key\ndepends_on: [5_x]\nagent: coder-1\nqa: human\n" +
			"review_hold: true\nretry_count: 2\n---\n\n# Log in\n- [x] a\n- [ ] b\n",
		"2_current/8 card & more.md": "",
		"2_current/9_bad.md":         "---\na: 1\na: 2\n---\n",
	})
	story := s.story("GET", "/api/stories/7_login", "")
	if version, _ := story["version"].(string); len(version) < 16 {
		t.Errorf("version %v", story["version"])
	}
	info, err := os.Stat(filepath.Join(s.dir, "2_current/7_login.md"))
	if since := float64(info.ModTime().UnixMilli()); err != nil || story["since_ms"] != since || story["blocked_since_ms"] != since {
		t.Errorf("since %v, blocked since %v, %v", story["since_ms"], story["blocked_since_ms"], err)
	}
	for _, key := range []string{"version", "since_ms", "blocked_since_ms", "commits"} {
		delete(story, key)
	}
	want := `{"blocked":"key","body":"# Log in\n- [x] a\n- [ ] b","body_cut":false,"branch":null,"criteria":{"done":1,"total":2},"depends_on":[],"fault":null,` +
		`"front_matter":{"agent":"coder-1","blocked":true,"blocked_reason":"key","depends_on":["5_x"],"name":"Log \u003cin\u003e","qa":"human","retry_count":2,"review_hold":true},` +
		`"front_matter_error":null,"merge_failure":null,"merges":false,"path":"2_current/7_login.md","project":"alpha","stage":"2_current","story_id":"7_login","story_name":"Log \u003cin\u003e",` +
		`"tasks":[{"done":true,"line":13,"optional":false,"text":"a"},{"done":false,"line":14,"optional":false,"text":"b"}],"waits_for":[],"work":null,"worktree":null,"writable":false}`
	if got := encode(t, story); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	plain := s.story("GET", "/api/stories/8%20card%20&%20more", "")
	if plain["story_id"] != "8 card & more" || plain["criteria"] != nil || plain["blocked_since_ms"] != nil || encode(t, plain["front_matter"]) != "{}" {
		t.Errorf("%v", plain)
	}
	if bad := s.story("GET", "/api/stories/9_bad", ""); bad["front_matter_error"] != "the key a is given twice" || bad["fault"] != bad["front_matter_error"] {
		t.Errorf("%v", bad)
	}
}

// TestStoriesOfADirectoryThatIsGone cannot be read or written, which says why and is nobody's fault here.
func TestStoriesOfADirectoryThatIsGone(t *testing.T) {
	s := newShop(t, board.Options{AllowMerges: true})
	version := s.version("0_story")
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	const want = "the work directory cannot be read: no such file or directory"
	waittest.Until(t, "the pipeline says so", func() bool {
		status, _, _ := s.ask("GET", "/api/pipeline", "")
		return status == 503
	})
	for _, request := range [][3]string{
		{"GET", "/api/stories/0_story"},
		{"GET", "/api/stories/0_story/changes"},
		{"GET", "/api/stories/0_story/picture?path=x.png"},
		{"PATCH", "/api/stories/0_story", `{"version":"` + version + `","stage":"2_current"}`},
		{"POST", "/api/stories", `{"name":"one more"}`},
		{"POST", "/api/stories/0_story/merge", `{"branch":"main","head":"` + strings.Repeat("0", 40) + `"}`},
	} {
		if status, answer, _ := s.ask(request[0], request[1], request[2]); status != 503 || answer != want {
			t.Errorf("%v: %d %s", request, status, answer)
		}
	}
}

// TestAStoryWhoseFileHasNoTextAsItsName is read and moved by the id that it is shown with.
func TestAStoryWhoseFileHasNoTextAsItsName(t *testing.T) {
	s := newStories(t, true, map[string]string{"1_a/b\xff\xfe.md": "text", "2_b/x.md": ""})
	const path = "/api/stories/b%EF%BF%BD%EF%BF%BD"
	if story := s.story("GET", path, ""); story["story_id"] != "b\ufffd\ufffd" || story["body"] != "text" {
		t.Errorf("read: %v", story)
	}
	s.story("PATCH", path, `{"version":"`+s.version("b%EF%BF%BD%EF%BF%BD")+`","stage":"2_b"}`)
	if _, err := os.Stat(filepath.Join(s.dir, "2_b", "b\xff\xfe.md")); err != nil {
		t.Error(err)
	}
}

func TestRequestsForStoriesThatAreRefused(t *testing.T) {
	files := map[string]string{"1_a/x.md": "text", "2_b/x.md": "", "secret.md": "secret"}
	open, closed := newStories(t, true, files), newStories(t, false, files)
	old := time.Unix(0, 0)
	if err := os.Chtimes(filepath.Join(open.dir, "2_b/x.md"), old, old); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "x in 1_a", func() bool { return open.story("GET", "/api/stories/x", "")["stage"] == "1_a" })
	version := open.version("x")
	for _, test := range []struct {
		server             *stories
		method, path, body string
		status             int
		allow              string
	}{
		{open, "GET", "/api/stories/nosuch", "", 404, ""},
		{open, "GET", "/api/stories/", "", 404, ""},
		{open, "GET", "/api/stories/..%2Fsecret", "", 404, ""},
		{open, "GET", "/api/stories/../secret", "", 404, ""},
		{open, "GET", "/api/stories/x%00", "", 404, ""},
		{open, "GET", "/api/stories/x/", "", 404, ""},
		{open, "GET", "/api/stories", "", 405, "POST"},
		{open, "DELETE", "/api/stories/x", "", 405, "GET, HEAD, PATCH"},
		{open, "POST", "/api/stories/x", "{}", 405, "GET, HEAD, PATCH"},
		{closed, "PATCH", "/api/stories/x", "", 403, ""},
		{closed, "PATCH", "/api/stories/nosuch", "{}", 403, ""},
		{closed, "POST", "/api/stories", `{"name":"x"}`, 403, ""},
		{open, "PATCH", "/api/stories/x", "", 400, ""},
		{open, "PATCH", "/api/stories/x", "{}", 400, ""},
		{open, "PATCH", "/api/stories/x", `{"version":1}`, 400, ""},
		{open, "PATCH", "/api/stories/x", `{"version":"old"}`, 409, ""},
		{open, "PATCH", "/api/stories/nosuch", `{"version":"old"}`, 404, ""},
		{open, "PATCH", "/api/stories/x", `{"version":"` + version + `","stage":"9_x"}`, 400, ""},
		{open, "PATCH", "/api/stories/x", `{"version":"` + version + `","stage":"../2_b"}`, 400, ""},
		{open, "PATCH", "/api/stories/x", `{"version":"` + version + `","stage":2}`, 400, ""},
		{open, "PATCH", "/api/stories/x", `{"version":"` + version + `","stage":"2_b"}`, 409, ""},
		{open, "PATCH", "/api/stories/x", `{"version":"` + version + `","blocked":true}`, 400, ""},
		{open, "PATCH", "/api/stories/x", `{"version":"` + version + `","blocked":" "}`, 400, ""},
		{open, "PATCH", "/api/stories/x", `{"version":"` + version + `","merge_failure":"x"}`, 400, ""},
		{open, "PATCH", "/api/stories/x", `{"version":"` + version + `","task":{"line":99,"done":true}}`, 400, ""},
		{open, "PATCH", "/api/stories/x", `{"version":"` + version + `","task":{"line":1}}`, 400, ""},
		{open, "PATCH", "/api/stories/x", `{"version":"` + version + `","task":null}`, 400, ""},
		{open, "PATCH", "/api/stories/x", `{"version":"` + version + `","stage":"2_b","task":{"line":1,"done":true}}`, 400, ""},
		{open, "POST", "/api/stories", `{}`, 400, ""},
		{open, "POST", "/api/stories", `{"name":" "}`, 400, ""},
		{open, "POST", "/api/stories", `{"name":"x","body":1}`, 400, ""},
		{open, "POST", "/api/stories", `{"name":"x","stage":""}`, 400, ""},
		{open, "POST", "/api/stories", `{"name":"x","stage":"9_x"}`, 400, ""},
		{open, "POST", "/api/stories", `{"name":"` + strings.Repeat("x", 1<<20) + `"}`, 413, ""},
	} {
		status, answer, header := test.server.ask(test.method, test.path, test.body)
		if status != test.status || header.Get("Allow") != test.allow || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s %s %.60s: %d %s %v", test.method, test.path, test.body, status, answer, header)
		}
	}
	if open.version("x") != version {
		t.Error("the story has changed")
	}
}

func TestAStoryIsMovedBlockedAndCreated(t *testing.T) {
	s := newStories(t, true, map[string]string{"1_a/7_x.md": "---\r\n# c\r\nname: X\r\nmerge_failure: y\r\n---\r\ntext\r\n", "2_b/y.md": ""})
	patch := func(fields string) map[string]any {
		t.Helper()
		return s.story("PATCH", "/api/stories/7_x", `{"version":"`+s.version("7_x")+`"`+fields+`}`)
	}
	if moved := patch(`,"stage":"2_b","blocked":"key"`); moved["stage"] != "2_b" || moved["blocked"] != "key" || moved["path"] != "2_b/7_x.md" || moved["version"] != s.version("7_x") {
		t.Errorf("%v", moved)
	}
	if freed := patch(`,"blocked":null,"merge_failure":null`); freed["blocked"] != nil || freed["blocked_since_ms"] != nil || freed["merge_failure"] != nil {
		t.Errorf("%v", freed)
	}
	if content, err := os.ReadFile(filepath.Join(s.dir, "2_b/7_x.md")); err != nil || string(content) != "---\r\n# c\r\nname: X\r\n---\r\ntext\r\n" {
		t.Errorf("%q, %v", content, err)
	}
	status, answer, _ := s.ask("POST", "/api/stories", `{"name":"Pay by card","body":"- [ ] pay","stage":"2_b"}`)
	if status != 201 || !strings.Contains(answer, `"story_id":"8_story_pay_by_card","story_name":"Pay by card","stage":"2_b"`) {
		t.Errorf("%d %s", status, answer)
	}
	_, events, header := s.ask("GET", "/api/events", "")
	if strings.Count(events, `"type"`) != 2 || !strings.Contains(events, `"from_stage":"1_a","to_stage":"2_b"`) || !strings.Contains(events, `"reason":"key"`) || header.Get("Feed-Sequence") != "2" {
		t.Errorf("events %s", events)
	}
}

// Stories of a real repository are moved as people move them: by git mv, by checking out a branch, by stashing, by a rebase.
func TestStoriesMovedByGitAreRecorded(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	s := &stories{t: t, dir: t.TempDir(), feed: feed.New(time.Now)}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", s.dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_EDITOR=true")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	s.write("work/1_backlog/7_login.md", "# Log in\n")
	s.write("work/1_backlog/8_card.md", "# Card\n")
	s.write("work/2_current/.keep", "")
	s.write("work/3_qa/.keep", "")
	git("init", "-q", "-b", "main")
	git("add", "-A")
	git("commit", "-q", "-m", "Stories 7_login and 8_card")
	s.open(filepath.Join(s.dir, "work"), false)
	is := func(id, stage, commits string) {
		t.Helper()
		waittest.Until(t, id+" in "+stage+" after "+commits, func() bool {
			story := s.story("GET", "/api/stories/"+id, "")
			list, _ := story["commits"].([]any)
			var subjects []string
			for _, commit := range list {
				subjects = append(subjects, commit.(map[string]any)["subject"].(string))
			}
			return story["stage"] == stage && strings.Join(subjects, "; ") == commits
		})
	}
	is("7_login", "1_backlog", "Stories 7_login and 8_card")
	git("mv", "work/1_backlog/7_login.md", "work/2_current/7_login.md")
	is("7_login", "2_current", "Stories 7_login and 8_card")
	git("stash", "-q")
	is("7_login", "1_backlog", "Stories 7_login and 8_card")
	git("stash", "pop", "-q")
	git("commit", "-q", "-a", "-m", "7_login: begin")
	is("7_login", "2_current", "7_login: begin; Stories 7_login and 8_card")
	git("checkout", "-q", "-b", "side", "HEAD~1")
	is("7_login", "1_backlog", "Stories 7_login and 8_card")
	git("mv", "work/1_backlog/8_card.md", "work/3_qa/8_card.md")
	git("commit", "-q", "-m", "8_card: to QA")
	is("8_card", "3_qa", "8_card: to QA; Stories 7_login and 8_card")
	git("rebase", "-q", "main")
	is("7_login", "2_current", "7_login: begin; Stories 7_login and 8_card")
	is("8_card", "3_qa", "8_card: to QA; Stories 7_login and 8_card")
	_, answer, _ := s.ask("GET", "/api/events", "")
	var events []struct {
		Type    string
		StoryID string `json:"story_id"`
		To      string `json:"to_stage"`
	}
	if err := json.Unmarshal([]byte(answer), &events); err != nil {
		t.Fatal(err)
	}
	var moves []string
	for _, e := range events {
		if e.Type != "stage_transition" {
			t.Errorf("%+v", e)
		}
		if e.StoryID == "7_login" {
			moves = append(moves, e.To)
		}
	}
	if got := strings.Join(moves, " "); got != "2_current 1_backlog 2_current 2_current" { // the checkout is none
		t.Errorf("7_login moved to %s", got)
	}
}

func TestConcurrentChangesOfOneVersionLoseNothing(t *testing.T) {
	s := newStories(t, true, map[string]string{"1_a/x.md": "text", "2_b/y.md": ""})
	body := `{"version":"` + s.version("x") + `"`
	statuses := make([]int, 2)
	var both sync.WaitGroup
	for i, fields := range []string{`,"stage":"2_b"}`, `,"blocked":"key"}`} {
		both.Go(func() { statuses[i], _, _ = s.ask("PATCH", "/api/stories/x", body+fields) })
	}
	both.Wait()
	if statuses[0]+statuses[1] != 200+409 {
		t.Fatalf("statuses %v", statuses)
	}
	story := s.story("GET", "/api/stories/x", "")
	if moved, blocked := story["stage"] == "2_b", story["blocked"] == "key"; moved != (statuses[0] == 200) || blocked != (statuses[1] == 200) || story["body"] != "text" {
		t.Errorf("statuses %v, %v", statuses, story)
	}
}

func TestAReasonIsWholeInItsStoryAndItsEndElsewhere(t *testing.T) {
	long, end := strings.Repeat("é", 20_000), strings.Repeat("ü", 1000)
	s := newStories(t, true, map[string]string{"2_current/7_login.md": "---\nblocked: \"" + long + end + "\"\n---\n"})
	if got := s.story("GET", "/api/stories/7_login", "")["blocked"]; got != long+end {
		t.Errorf("the story's reason has %d bytes", len(encode(t, got)))
	}
	if _, answer, _ := s.ask("GET", "/api/pipeline", ""); !strings.Contains(answer, `"`+end+`"`) {
		t.Error("the pipeline has something else than the end of the reason")
	}
}

func TestABoxIsTickedAndNothingElseChanges(t *testing.T) {
	const content = "\ufeff---\r\nname: x\r\n---\r\n- [ ] a\r\n  1. [X] b\r\n```\r\n- [ ] no task\r\n```\r\n"
	s := newStories(t, true, map[string]string{"1_a/x.md": content})
	for _, test := range []struct{ change, want string }{
		{`{"line":4,"done":true}`, strings.Replace(content, "- [ ] a", "- [x] a", 1)},
		{`{"line":4,"done":true}`, strings.Replace(content, "- [ ] a", "- [x] a", 1)},
		{`{"line":5,"done":false}`, strings.NewReplacer("- [ ] a", "- [x] a", "[X] b", "[ ] b").Replace(content)},
	} {
		body := `{"version":"` + s.version("x") + `","task":` + test.change + `}`
		if answer := s.story("PATCH", "/api/stories/x", body); answer["version"] != s.version("x") {
			t.Errorf("%s: %v", test.change, answer)
		}
		if got, err := os.ReadFile(filepath.Join(s.dir, "1_a/x.md")); err != nil || string(got) != test.want {
			t.Errorf("%s: %q, %v", test.change, got, err)
		}
	}
}
