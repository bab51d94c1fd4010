package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/config"
	"switchyard/internal/waittest"
)

func TestAProjectServerFromMoveToEvent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o777); err != nil {
		t.Fatal(err)
	}
	p := start(t, switchyard(t, dir, "project", "--name", "alpha", "--work", "DIR/work", "--listen", "127.0.0.1:0"))
	var stages []string
	entries, err := os.ReadDir(work)
	for _, entry := range entries {
		stages = append(stages, entry.Name())
	}
	if want := "1_backlog 2_current 3_qa 4_merge 5_done 6_archived"; err != nil || strings.Join(stages, " ") != want {
		t.Fatalf("made %v, %v", stages, err)
	}
	item := func(stage string) string { return filepath.Join(work, stage, "7_login.md") }
	if err := os.WriteFile(item("2_current"), []byte("---\nname: Log in\nblocked: key\n---\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	type event struct {
		Type        string
		StoryID     string `json:"story_id"`
		StoryName   string `json:"story_name"`
		FromStage   string `json:"from_stage"`
		ToStage     string `json:"to_stage"`
		Reason      string
		TimestampMS int64 `json:"timestamp_ms"`
	}
	since := int64(0)
	next := func() event {
		t.Helper()
		var events []event
		status, text := p.do(t, "GET", fmt.Sprintf("/api/events?wait=60s&since=%d", since), "")
		if err := json.Unmarshal([]byte(text), &events); err != nil || status != http.StatusOK || len(events) != 1 {
			t.Fatalf("%d %s, %v", status, text, err)
		}
		if now := time.Now().UnixMilli(); events[0].TimestampMS <= since || events[0].TimestampMS > now || events[0].TimestampMS < now-60_000 {
			t.Fatalf("stamped %d at %d", events[0].TimestampMS, now)
		}
		since, events[0].TimestampMS = events[0].TimestampMS, 0
		return events[0]
	}
	if got, want := next(), (event{Type: "story_blocked", StoryID: "7_login", StoryName: "Log in", Reason: "key"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if err := os.Rename(item("2_current"), item("3_qa")); err != nil {
		t.Fatal(err)
	}
	if got, want := next(), (event{Type: "stage_transition", StoryID: "7_login", StoryName: "Log in", FromStage: "2_current", ToStage: "3_qa"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if status, text := p.do(t, "GET", "/api/pipeline", ""); status != http.StatusOK || !strings.Contains(text, `{"name":"3_qa","items":[{"story_id":"7_login"`) {
		t.Errorf("pipeline: %d %s", status, text)
	}
}

func TestAProjectServerFindsTheWorkOfARepository(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stages(t, filepath.Join(dir, "alpha", ".huskies", "work"), "1_story_login")
	p := start(t, switchyard(t, dir, "project", "--name", "alpha", "--work", "DIR/alpha", "--listen", "127.0.0.1:0"))
	if status, text := p.do(t, "GET", "/api/pipeline", ""); status != http.StatusOK || !strings.Contains(text, `"1_story_login"`) {
		t.Errorf("pipeline: %d %s", status, text)
	}
	if err := os.RemoveAll(filepath.Join(dir, "alpha", ".huskies")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "alpha", "README.md"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	status, says := refused(t, switchyard(t, dir, "project", "--name", "alpha", "--work", "DIR/alpha", "--listen", "127.0.0.1:0"))
	if entries, _ := os.ReadDir(filepath.Join(dir, "alpha")); status != 1 || !strings.Contains(says, "--work: "+dir+"/alpha has other files") || len(entries) != 1 {
		t.Errorf("%d, %s; it has %v", status, says, entries)
	}
}

func TestAProjectServerIsWrittenToOnlyWhereThatIsAllowed(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]int{"--allow-writes": http.StatusCreated, "--allow-writes=false": http.StatusForbidden} {
		dir := t.TempDir()
		p := start(t, switchyard(t, dir, "project", "--name", "alpha", "--work", "DIR/work", "--listen", "127.0.0.1:0", "--create", flag))
		status, text := p.do(t, "POST", "/api/stories", `{"name":"Log in"}`)
		_, err := os.Stat(filepath.Join(dir, "work", "1_backlog", "1_story_log_in.md"))
		if status != want || (err == nil) != (want == http.StatusCreated) {
			t.Errorf("%s: %d %s, %v", flag, status, text, err)
		}
	}
}

func TestSignalsEndAProjectServerCleanly(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		dir := t.TempDir()
		p := start(t, switchyard(t, dir, "project", "--name", "alpha", "--work", "DIR", "--listen", "localhost:0"))
		if status, _ := p.stop(t, signal); status != 0 || strings.Contains(p.stderr.String(), "cut off") {
			t.Errorf("%v: status %d: %s", signal, status, &p.stderr)
		}
	}
}

func TestAStoppingProjectServerAnswersThoseWhoWait(t *testing.T) {
	var log waittest.Log
	logger := slog.New(slog.NewTextHandler(&log, nil))
	p, err := openProject(&config.Project{Name: "alpha", Work: t.TempDir()}, logger)
	if err != nil {
		t.Fatal(err)
	}
	inside, serving := make(chan bool), p.handler
	p.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		serving.ServeHTTP(w, r)
	})
	listeners, err := listen(logger, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx, listeners) }()
	conn, err := net.Dial("tcp", listeners[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /api/events?wait=60s HTTP/1.1\r\nHost: localhost\r\n\r\n")
	<-inside
	stop()
	events, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	events.Body.Close()
	if events.StatusCode != http.StatusOK || events.ContentLength != 2 {
		t.Errorf("who waited got %v", events)
	}
	if err := <-ended; err != nil || strings.Contains(log.String(), "cut off") {
		t.Errorf("ended with %v: %s", err, &log)
	}
}

func TestMistakesInTheCallOfAProjectServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"", 2, "--name: must not be empty"},
		{"--name alpha", 2, "--work: must not be empty"},
		{"--name alpha --work DIR extra", 2, `"extra"`},
		{"--name alpha --work DIR --nosuch", 2, "--nosuch"},
		{"--name alpha --work DIR --layout scrum", 2, "--layout: must be one of stages, openspec"},
		{"--name alpha --work DIR --layout kiro", 1, "has no board of kiro: no .kiro/specs"},
		{"--name alpha --work DIR --listen 0.0.0.0:0", 2, "--allow-unauthenticated"},
		{"--name alpha --work DIR/file/nosuch --listen 127.0.0.1:0", 1, "nosuch"},
		{"--name alpha --work DIR/file --listen 127.0.0.1:0", 1, "file is a file, not a directory"},
		{"--name alpha --work DIR --layout beads --listen 127.0.0.1:0", 1, "has no board of beads: no .beads"},
		{"--name alpha --work DIR/work --create --listen " + taken.Addr().String(), 1, "address already in use"},
	} {
		status, says := refused(t, switchyard(t, dir, append([]string{"project"}, strings.Fields(c.args)...)...))
		if status != c.status || !strings.Contains(says, c.says) {
			t.Errorf("%s: status %d, says %q", c.args, status, says)
		}
	}
}

func TestATokenOfAProjectServerComesFromTheEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := switchyard(t, dir, "project", "--name", "alpha", "--work", "DIR", "--listen", "0.0.0.0:0")
	cmd.Env = append(cmd.Env, "SWITCHYARD_PROJECT_TOKEN=s3cret")
	p := start(t, cmd)
	if status, _ := p.do(t, "GET", "/api/events", ""); status != http.StatusUnauthorized {
		t.Errorf("status %d", status)
	}
	if strings.Contains(p.stderr.String(), "s3cret") {
		t.Errorf("the log holds the token: %s", &p.stderr)
	}
}
