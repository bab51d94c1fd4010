package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/gittest"
	"switchyard/internal/waittest"
)

// TestACheckoutIsNoNewsForTheGateway: what another branch has elsewhere, lacks or adds changes no stays, and what was
// acknowledged stays so. Once it moves there it counts as always.
func TestACheckoutIsNoNewsForTheGateway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	board := filepath.Join(dir, "shop")
	git := func(args ...string) { t.Helper(); gittest.Git(t, board, args...) }
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(board, path)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, stage := range []string{"1_backlog", "2_current", "5_done"} {
		write(stage+"/.keep", "")
	}
	write("2_current/1_moved.md", "---\nblocked: true\nreview_hold: no\n---\n# Moved\n")
	write("2_current/2_missing.md", "# Missing\n")
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-qm", "board")
	git("switch", "-qc", "side")
	git("rm", "-qf", "2_current/1_moved.md", "2_current/2_missing.md")
	write("5_done/1_moved.md", "# Moved\n")
	write("1_backlog/3_new.md", "# New\n")
	git("add", ".")
	git("commit", "-qm", "elsewhere")
	git("switch", "-q", "main")
	write("2_current/4_loose.md", "# Loose, which git does not know\n")

	p := start(t, switchyard(t, dir, "up", "--listen=localhost:0", "--data=DIR/data", "DIR/shop"))
	type answer struct {
		Stage          string
		SinceMS        int64  `json:"since_ms"`
		BlockedSinceMS *int64 `json:"blocked_since_ms"`
		Stays          []struct {
			Stage  string
			FromMS int64  `json:"from_ms"`
			ToMS   *int64 `json:"to_ms"`
		}
		History []json.RawMessage
	}
	story := func(id string) (a answer) {
		t.Helper()
		_, text := p.do(t, "GET", "/api/gateway/projects/shop/stories/"+id, "")
		json.Unmarshal([]byte(text), &a) // an unknown one is none
		return a
	}
	stays := func(id string) string {
		t.Helper()
		text, _ := json.Marshal(story(id).Stays)
		return string(text)
	}
	until := func(id, text string) {
		t.Helper()
		waittest.Until(t, id+": "+text, func() bool { return strings.Contains(stays(id), text) })
	}
	until("4_loose", `"to_ms":null`)
	for _, id := range []string{"1_moved", "2_missing"} { // git, whose times are whole seconds, says since when
		until(id, `000,"to_ms":null`)
	}
	p.eventually(t, "/api/gateway/attention", `"blocked/shop/1_moved"`)
	if status, text := p.do(t, "POST", "/api/gateway/attention/acknowledge", `{"key":"blocked/shop/1_moved"}`); status != 200 {
		t.Fatal(status, text)
	}
	since := story("1_moved").BlockedSinceMS
	before := map[string]string{"1_moved": stays("1_moved"), "2_missing": stays("2_missing")}

	git("switch", "-q", "side")
	p.eventually(t, "/api/gateway/pipeline", `"3_new"`)
	if err := os.Remove(filepath.Join(board, "2_current", "4_loose.md")); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the gateway has seen that another story is gone", func() bool {
		return !strings.Contains(stays("4_loose"), `"to_ms":null`)
	})
	p.do(t, "GET", "/api/gateway/attention", "")
	for id, was := range before {
		if is := stays(id); is != was || len(story(id).History) > 0 {
			t.Errorf("%s on another branch: %s, before: %s", id, is, was)
		}
	}
	if got := stays("3_new"); got != "[]" {
		t.Errorf("a story that only that branch has: %s", got)
	}

	git("switch", "-q", "main")
	for id, was := range before {
		waittest.Until(t, id+" is back", func() bool { return story(id).Stage == "2_current" })
		if is := stays(id); is != was {
			t.Errorf("%s: %s, before: %s", id, is, was)
		}
	}
	p.eventually(t, "/api/gateway/attention", `"blocked/shop/1_moved"`)
	if _, text := p.do(t, "GET", "/api/gateway/attention", ""); !strings.Contains(text, `"by":"admin"`) {
		t.Errorf("no longer acknowledged: %s", text)
	}
	if is := story("1_moved").BlockedSinceMS; since == nil || is == nil || *is != *since {
		t.Errorf("blocked since %v, before: %v", is, since)
	}
	git("mv", "2_current/2_missing.md", "5_done/")
	until("2_missing", `"5_done"`)

	// An event ends no claim that was made after it.
	git("commit", "-qm", "done")
	git("switch", "-q", "--detach", "HEAD~1")
	claimed := func(id string) bool {
		_, text := p.do(t, "GET", "/api/gateway/projects/shop/stories/"+id, "")
		return strings.Contains(text, `"claim":{`)
	}
	for _, id := range []string{"1_moved", "2_missing"} {
		waittest.Until(t, id+" is back", func() bool { return story(id).Stage == "2_current" })
		if status, text := p.do(t, "POST", "/api/gateway/projects/shop/stories/claim", `{"story_id":"`+id+`"}`); status != 200 {
			t.Fatal(status, text)
		}
	}
	git("switch", "-q", "main")
	waittest.Until(t, "2_missing is done", func() bool { return story("2_missing").Stage == "5_done" })
	git("mv", "2_current/1_moved.md", "5_done/")
	waittest.Until(t, "the end of a claim", func() bool { return !claimed("1_moved") })
	if !claimed("2_missing") {
		t.Error("a claim ended by an older event")
	}
}
