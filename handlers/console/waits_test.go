package console_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/waittest"
)

const claims = "/api/gateway/projects/webshop/stories/claim"

const tasksFile = ".taskmaster/tasks/tasks.json"

// waitingTasks are three, of which the first waits for the second.
const waitingTasks = `{"master": {"tasks": [
  {"id": 1, "title": "Serve", "status": "pending", "dependencies": [2, "3"]},
  {"id": 2, "title": "Bake", "status": "pending", "dependencies": [3]},
  {"id": 3, "title": "Buy flour", "status": "done", "dependencies": []}
]}}`

// TestAStoryThatWaitsForAnotherIsNotGivenOut until that is done: then to those who wait for one.
func TestAStoryThatWaitsForAnotherIsNotGivenOut(t *testing.T) {
	s := newLayoutSite(t, "task-master", map[string]string{tasksFile: waitingTasks})
	s.Get("/projects/webshop").WantText(t, "waits for 2")
	s.Get("/projects/webshop/stories/1").WantText(t, "Waits for 2.")
	s.Get("/projects/webshop/stories/2").WantNoText(t, "Waits for")
	s.Get("/api/gateway/projects/webshop/stories/1").WantText(t, `"depends_on":["2","3"],"waits_for":["2"]`)
	s.Get("/api/gateway/pipeline").WantText(t, `"depends_on":["2","3"],"waits_for":["2"]`, `"depends_on":["3"],"waits_for":[]`)
	s.Send("POST", claims, "{}").WantStatus(t, http.StatusOK).WantText(t, `"story_id":"2"`)
	s.Send("POST", claims, `{"resume":false}`).WantStatus(t, http.StatusNoContent)
	got := make(chan string)
	go func() { got <- s.Send("POST", claims, `{"resume":false,"wait":"20s"}`).Text }()
	text := strings.Replace(s.file(tasksFile), `"title": "Bake", "status": "in-progress"`, `"title": "Bake", "status": "done"`, 1)
	if err := os.WriteFile(filepath.Join(s.dir, tasksFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "2 to be done", func() bool { return !strings.Contains(s.Get("/projects/webshop").Text, "waits for 2") })
	if text := <-got; !strings.Contains(text, `"story_id":"1"`) {
		t.Errorf("who waits gets %s", text)
	}
}

// TestAStatusThatABoardDoesNotHaveIsWorkOrHasEnded, and nothing is moved into it.
func TestAStatusThatABoardDoesNotHaveIsWorkOrHasEnded(t *testing.T) {
	files := backlogFiles()
	files["backlog/tasks/back-6 - f.md"] = backlogTask("BACK-6", "On Hold")
	s := newLayoutSite(t, "backlog.md", files)
	s.Get("/projects/webshop").WantText(t, `title="3_in_progress"`, ">On Hold<", `title="4_done"`, "Won&#39;t Do")
	s.Get(backPage).WantNoText(t, "Move to <bdi>On Hold</bdi>")
	for to, words := range map[string]string{"8_on_hold": "On Hold", "7_won_t_do": "Won't Do"} {
		s.Send("POST", claims, `{"story_id":"BACK-3","to":"`+to+`"}`).WantStatus(t, http.StatusBadRequest).WantText(t, words)
	}
	s.Get("/projects/webshop").WantText(t, "<dt>In work</dt><dd>2 </dd>")
	path := filepath.Join(s.dir, "backlog/tasks/back-1 - a.md")
	if err := os.WriteFile(path, []byte(backlogTask("BACK-1", "Won't Do")), 0o600); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "BACK-1 to end", func() bool {
		return strings.Contains(s.Get("/projects/webshop").Text, "<dt>In work</dt><dd>1 </dd>")
	})
	s.Get(backPage).WantText(t, `title="7_won_t_do"`, "Move to <bdi>In Progress</bdi>").WantNoText(t, "Move to <bdi>On Hold</bdi>")
}
