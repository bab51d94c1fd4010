package projectserver_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/waittest"
	"switchyard/internal/wire"
)

// New stories of one id in several work trees are one if their files have one name, else several, in one order before
// and after their merges; what stood twice before is where it was. Each is written where it stands.
func TestNewStoriesOfOneIDAreToldApartByTheirFiles(t *testing.T) {
	s := shop{&stories{t: t, dir: t.TempDir(), feed: feed.New(time.Now), trees: true}, t.TempDir()}
	task := func(id, title, status, created string) string {
		return fmt.Sprintf("---\nid: %s\ntitle: %s\nstatus: %s\ncreated_date: '%s'\n---\n\n%[2]s.\n", id, title, status, created)
	}
	const tasks = "backlog/tasks/"
	s.write("backlog/config.yml", "statuses: [To Do, In Progress, Done]\n")
	s.write(tasks+"task-1 - Again.md", task("task-1", "Again", "To Do", "2026-03-01"))
	s.write("backlog/completed/task-1 - Once.md", task("task-1", "Once", "Done", "2026-01-01"))
	s.git("init", "-q", "-b", "main")
	s.git("add", ".")
	s.git("commit", "-qm", "board")
	for _, tree := range []string{"a", "b", "c"} {
		s.in(tree, "status")
	}
	s.openBoard(board.Options{Dir: s.dir, Layout: domain.LayoutBacklog, AllowWrites: true, AllowMerges: true})
	s.stands("task-1~2", "5_completed", "", "main")
	waittest.Until(t, "the trees", func() bool {
		_, answer, _ := s.ask("GET", "/api/pipeline", "")
		return strings.Contains(answer, filepath.Join(s.beside, "c"))
	})
	is := func(id, title, stage, worktree, branch string) {
		t.Helper()
		s.stands(id, stage, worktree, branch)
		waittest.Until(t, title, func() bool { item, _ := s.item(id); return item.StoryName == title })
		if story := s.details(id); story.StoryID != id || wire.Text(story.Body) != title+"." {
			t.Errorf("%s is %s: %q", id, story.StoryID, wire.Text(story.Body))
		}
	}
	s.put("a", tasks+"task-5 - Pay.md", task("task-5", "Pay", "To Do", "2026-05-02"))
	is("task-5", "Pay", "2_to_do", "a", "a")
	s.put("b", tasks+"task-5 - Login.md", task("task-5", "Login", "In Progress", "2026-05-01"))
	is("task-5", "Login", "3_in_progress", "b", "b")
	// Seen before the one in b, this would be a story that moves.
	s.put("c", tasks+"task-5 - Login.md", task("task-5", "Login", "To Do", "2026-05-01"))
	is("task-5~2", "Pay", "2_to_do", "a", "a")
	s.stands("task-1~2", "5_completed", "", "main")
	move := func(id, stage string) {
		t.Helper()
		status, answer, _ := s.ask("PATCH", "/api/stories/"+id, fmt.Sprintf(`{"version":%q,"stage":%q}`, s.version(id), stage))
		if status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
		var story wire.Story
		if err := json.Unmarshal([]byte(answer), &story); err != nil || story.StoryID != id || wire.Text(story.Worktree) == "" {
			t.Errorf("%v, %s", err, answer)
		}
	}
	move("task-5~2", "3_in_progress")
	is("task-5~2", "Pay", "3_in_progress", "a", "a")
	text, err := os.ReadFile(filepath.Join(s.beside, "a", tasks, "task-5 - Pay.md"))
	if err != nil || !strings.Contains(string(text), "status: In Progress") {
		t.Errorf("%v, %s", err, text)
	}
	waittest.Until(t, "links", func() bool {
		list, first := s.work("task-5~2"), s.work("task-5")
		return len(list) == 1 && list[0].Link == "moved" && strings.HasSuffix(*list[0].Worktree, "/a") && len(first) == 2
	})
	for _, tree := range []string{"a", "b"} {
		s.in(tree, "add", ".")
		s.in(tree, "commit", "-qm", "a task")
	}
	head := s.in("a", "rev-parse", "HEAD")
	waittest.Until(t, "the commit", func() bool { return s.work("task-5~2")[0].Head == head })
	if status, answer, _ := s.ask("POST", "/api/stories/task-5~2/merge", fmt.Sprintf(`{"branch":"a","head":%q}`, head)); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	is("task-5~2", "Pay", "4_done", "", "main")
	is("task-5", "Login", "3_in_progress", "b", "b")
	s.in("b", "merge", "-q", "--no-edit", "main")
	is("task-5", "Login", "3_in_progress", "b", "b")
	is("task-5~2", "Pay", "4_done", "", "main")
	s.git("merge", "-q", "b")
	is("task-5", "Login", "3_in_progress", "", "main")
	is("task-5~2", "Pay", "4_done", "", "main")
	want := "task-5~2 2_to_do>3_in_progress, task-5~2 3_in_progress>4_done"
	if got := strings.Join(s.events(), ", "); got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	// A new one on a branch that no work tree has any more is told apart from those of the project, too.
	s.in("c", "checkout", "-qf", "-b", "fix/task-1-more", "main")
	s.put("c", tasks+"task-1 - More.md", task("task-1", "More", "To Do", "2026-04-01"))
	s.in("c", "add", ".")
	s.in("c", "commit", "-qm", "more")
	is("task-1~2", "More", "2_to_do", "c", "fix/task-1-more")
	s.in("c", "checkout", "-q", "c")
	is("task-1~2", "More", "2_to_do", "", "fix/task-1-more")
	is("task-1", "Again", "2_to_do", "", "main")
}
