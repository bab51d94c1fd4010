package board

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/waittest"
)

func backlogTask(id, status string) string {
	return "---\nid: " + id + "\ntitle: Task " + id + "\nstatus: " + status + "\nassignee: @codex\nupdated_date: '2025-01-02 03:04'\n---\n\n" +
		"## Acceptance Criteria\n<!-- AC:BEGIN -->\n- [x] #1 one\n- [ ] #2 two\n<!-- AC:END -->\n\n## Definition of Done\n- [ ] no criterion\n"
}

func backlogFiles() map[string]string {
	return map[string]string{
		"backlog/config.yml":              "statuses: [To Do, \"In Progress\", Done]\n",
		"backlog/tasks/BACK-10 - a.md":    backlogTask("BACK-10", "todo"),
		"backlog/tasks/BACK-9 - b.md":     backlogTask("BACK-9", "In Progress"),
		"backlog/tasks/BACK-9.1 - c.md":   backlogTask("BACK-9.1", "Won't Do"),
		"backlog/tasks/readme.md":         backlogTask("BACK-1", "Done"),
		"backlog/tasks/none.md":           "---\ntitle: x\n---\n",
		"backlog/drafts/draft-1 - d.md":   "---\nid: DRAFT-1\ntitle: D\n---\n## Acceptance Criteria\n- [ ] a\n## Next\n- [ ] b\n",
		"backlog/completed/BACK-9 - e.md": backlogTask("BACK-9", "Done"),
		"backlog/completed/BACK-2 - e.md": backlogTask("BACK-2", "Done"),
		"backlog/archive/tasks/BACK-3.md": backlogTask("BACK-3", "Done"),
	}
}

func TestBacklogTasksStandWhereTheirStatusSays(t *testing.T) {
	b := openLayout(t, "backlog.md", backlogFiles())
	want := "1_draft: DRAFT-1 (D) 0/1\n2_to_do: BACK-10 (Task BACK-10) 1/2\n3_in_progress: BACK-9 (Task BACK-9) 1/2\n" +
		"5_completed: BACK-2 (Task BACK-2) 1/2\n5_completed: BACK-9~2 (Task BACK-9) 1/2\n6_archived: BACK-3 (Task BACK-3) 1/2\n7_won_t_do: BACK-9.1 (Task BACK-9.1) 1/2"
	if b.shows() != want {
		t.Fatalf("got\n%s\nwant\n%s", b.shows(), want)
	}
	if stage := b.View().Stages[6]; stage.Label != "Won't Do" {
		t.Errorf("%q", stage.Label)
	}
	b.write("backlog/config.yml", "statuses: [Idea, To Do, \"to  do\", \"In Progress\", Done, IDEA]\n") // two are listed twice
	waittest.Until(t, "the new column", func() bool { return strings.Contains(b.shows(), "4_in_progress: BACK-9 ") })
	if err := os.Rename(filepath.Join(b.dir, "backlog/tasks/BACK-10 - a.md"), filepath.Join(b.dir, "backlog/tasks/BACK-10 - z.md")); err != nil {
		t.Fatal(err)
	}
	b.write("backlog/tasks/BACK-9 - b.md", "---\nid: BA") // half written
	b.write("backlog/tasks/BACK-9 - b.md", backlogTask("BACK-9", "Done"))
	waittest.Until(t, "the move", func() bool { return b.moved() != "" })
	if b.moved() != "BACK-9 4_in_progress 5_done" {
		t.Errorf("moves: %s", b.moved())
	}
}

func TestCriteriaAreBetweenTheirMarks(t *testing.T) {
	for body, want := range map[string]string{
		"<!-- AC:BEGIN -->\n- [x] a\n<!-- AC:END -->\n- [ ] b\n":                                "1/1",
		"## Acceptance Criteria\n- [x] a\n- [ ] b\n":                                            "1/2",
		"## Acceptance Criteria\n- [x] a\n<!-- AC:BEGIN -->\n- [ ] b\n":                         "0/0",
		"<!-- COMMENTS:BEGIN -->\n<!-- AC:BEGIN -->\n- [ ] b\n<!-- COMMENTS:END -->\n":          "0/0",
		"<!-- COMMENTS:BEGIN -->\n<!-- AC:BEGIN -->\n- [ ] b\n<!-- AC:END -->\n":                "0/1",
		strings.Repeat("<!-- COMMENTS:BEGIN -->\n", 40_000) + "## acceptance criteria\n- [ ] b": "0/1",
	} {
		count := countTasks(backlogCriteria(splitDocument([]byte(body))))
		if got := fmt.Sprintf("%d/%d", count.Done, count.Total); got != want {
			t.Errorf("%.60q: %s, want %s", body, got, want)
		}
	}
}

func TestATaskIsMovedAsBacklogItselfDoes(t *testing.T) {
	t.Parallel() // it waits
	b := openLayout(t, "backlog.md", backlogFiles())
	const name = "backlog/tasks/BACK-10 - a.md"
	before := b.content(name)
	done, draft, completed := "4_done", "1_draft", "5_completed"
	if err := b.change("BACK-10", Change{Stage: &done}); err != nil {
		t.Fatal(err)
	}
	date := regexp.MustCompile(`updated_date: '\d{4}-\d\d-\d\d \d\d:\d\d'`)
	want := strings.Replace(before, "status: todo", "status: Done", 1)
	got := b.content(name)
	if date.ReplaceAllString(got, "") != date.ReplaceAllString(want, "") || strings.Contains(got, "2025-01-02") {
		t.Errorf("%s", got)
	}
	if err := b.change("BACK-10", Change{Task: &TaskChange{Line: 12, Done: true}}); err != nil || !strings.Contains(b.content(name), "- [x] #2 two") {
		t.Errorf("%v: %s", err, b.content(name))
	}
	for stage, id := range map[*string]string{&draft: "BACK-10", &completed: "BACK-10", &done: "DRAFT-1"} {
		if err := b.change(id, Change{Stage: stage}); err == nil || !strings.Contains(err.Error(), "backlog itself") {
			t.Errorf("%s to %s: %v", id, *stage, err)
		}
	}
	lock := filepath.Join(b.dir, "backlog/.locks/task-back-10")
	if err := os.Mkdir(lock, 0o777); err != nil {
		t.Fatal(err)
	}
	todo := "2_to_do"
	if err := b.change("BACK-10", Change{Stage: &todo}); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("held by another: %v", err)
	}
	old := time.Now().Add(-lockAge - time.Second)
	if err := os.Chtimes(lock, old, old); err != nil {
		t.Fatal(err)
	}
	if err := b.change("BACK-10", Change{Stage: &todo}); err != nil {
		t.Errorf("left behind: %v", err)
	}
	if _, err := os.Stat(lock); !os.IsNotExist(err) {
		t.Errorf("the lock stays: %v", err)
	}
}

func TestALockedTaskWaits(t *testing.T) {
	b := openLayout(t, "backlog.md", backlogFiles())
	unlock, err := b.layout.lock(context.Background(), "BACK-10")
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		done := "4_done"
		if err := b.change("BACK-10", Change{Stage: &done}); err != nil {
			t.Error(err)
		}
	})
	if _, err := b.Read("BACK-9"); err != nil { // nobody else waits
		t.Error(err)
	}
	unlock()
	wait.Wait()
}
