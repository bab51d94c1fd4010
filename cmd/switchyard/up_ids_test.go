package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// TestStoriesWithOddIDsAreLikeOthers: those of Task Master have the name of their list and a slash in theirs, and people may
// write anything at all. They are read, found, claimed, ticked and moved, over the API and on their pages.
func TestStoriesWithOddIDsAreLikeOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const tasks = `"tasks": [{"id": 1, "title": "Pay by card", "status": "pending"}, {"id": 2, "status": "pending"}]`
	plant(t, filepath.Join(dir, "alpha"), map[string]string{
		".taskmaster/tasks/tasks.json": `{"master": {` + tasks + `}, "feat/x y": {` + tasks + `}}`,
	})
	odd := `a/../B%2F?#"ü`
	plant(t, filepath.Join(dir, "beta"), map[string]string{
		"backlog/config.yml":    "statuses: [To Do, Doing, Done]\n",
		"backlog/tasks/b-1 .md": "---\nid: '" + odd + "'\ntitle: Pay by card\nstatus: To Do\n---\n\n## Acceptance Criteria\n\n- [ ] one\n",
	})
	p := start(t, switchyard(t, dir, "up", "--listen=localhost:0", "--data=DIR/data", "DIR/alpha", "DIR/beta"))
	p.eventually(t, "/api/gateway/search?q=card", `feat/x y/1`, `a/../B%2F`)
	for id, project := range map[string]string{"feat/x y/1": "alpha", "master/2": "alpha", odd: "beta"} {
		path := "/projects/" + project + "/stories/" + url.PathEscape(id)
		wants := func(status int, text string, want int, words ...string) {
			t.Helper()
			for _, word := range words {
				if !strings.Contains(text, word) {
					t.Errorf("%s: %q is not in %s", id, word, text)
				}
			}
			if status != want {
				t.Errorf("%s: %d %s", id, status, text)
			}
		}
		var story struct {
			ID      string `json:"story_id"`
			Version string
			Stage   string
			Tasks   []struct{ Line int }
		}
		read := func() {
			t.Helper()
			status, text := p.do(t, "GET", "/api/gateway"+path, "")
			wants(status, text, http.StatusOK)
			if err := json.Unmarshal([]byte(text), &story); err != nil || story.ID != id {
				t.Fatalf("%v: %s", err, text)
			}
		}
		read()
		change := func(change map[string]any) {
			t.Helper()
			change["version"] = story.Version
			body, err := json.Marshal(change)
			if err != nil {
				t.Fatal(err)
			}
			status, text := p.do(t, "PATCH", "/api/gateway"+path, string(body))
			wants(status, text, http.StatusOK)
			read()
		}
		stage := "2_in_progress"
		if project == "beta" {
			stage = "3_doing"
			change(map[string]any{"task": map[string]any{"line": story.Tasks[0].Line, "done": true}})
		}
		change(map[string]any{"stage": stage})
		if story.Stage != stage {
			t.Errorf("%s is in %s", id, story.Stage)
		}
		quoted, err := json.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		p.eventually(t, "/api/gateway/events", `"story_id":`+string(quoted))
		claim := "/api/gateway/projects/" + project + "/stories/claim"
		status, text := p.do(t, "POST", claim, `{"story_id":`+string(quoted)+`}`)
		wants(status, text, http.StatusOK, `"story_id":`+string(quoted))
		status, text = p.do(t, "GET", path, "")
		wants(status, text, http.StatusOK, `action="`+path+`"`, "Release")
		status, text = p.do(t, "DELETE", "/api/gateway"+path+"/claim", "")
		wants(status, text, http.StatusNoContent)
		status, text = p.do(t, "GET", "/projects/"+project, "")
		wants(status, text, http.StatusOK, `href="`+path+`"`)
		status, text = p.do(t, "GET", "/events", "")
		wants(status, text, http.StatusOK, `href="`+path)
		response, err := http.PostForm(p.url+path, url.Values{"do": {"move"}, "version": {story.Version}, "stage": {"1_pending"}})
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if project == "alpha" && response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", id, response.Status)
		}
		read()
		if project == "alpha" && story.Stage != "1_pending" {
			t.Errorf("%s is in %s", id, story.Stage)
		}
	}
}
