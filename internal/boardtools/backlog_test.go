package boardtools_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"switchyard/internal/board"
	"switchyard/internal/domain"
)

const statuses = `["To Do", "In Progress", "In: Review", "Won't Do", "yes", "3", "🚀 Ship", "a #b", "(x) & [y]", "Done"]`

// config is that of a board that asks no remotes or other branches.
const config = "project_name: \"Test\"\ndefault_status: \"To Do\"\nstatuses: " + statuses + "\nlabels: []\ndate_format: yyyy-mm-dd hh:mm\n" +
	"auto_commit: false\nremote_operations: false\ncheck_active_branches: false\nbypass_git_hooks: false\ntask_prefix: \"task\"\n"

func task(front, body string) string { return "---\n" + front + "---\n\n" + body }

func tasks() map[string]string {
	files := map[string]string{
		"backlog/config.yml":                    config,
		"backlog/tasks/readme.md":               task("id: TASK-900\ntitle: R\nstatus: Done\n", ""),
		"backlog/drafts/draft-1 - D.md":         task("id: DRAFT-1\ntitle: D\nstatus: Draft\n", ""),
		"backlog/completed/task-800 - C.md":     task("id: TASK-800\ntitle: C\nstatus: Done\n", ""),
		"backlog/archive/tasks/task-700 - A.md": task("id: TASK-700\ntitle: A\nstatus: Done\n", ""),
	}
	add := func(front, body string) {
		id := len(files) * 10
		files[fmt.Sprintf("backlog/tasks/task-%d - T.md", id)] = task(fmt.Sprintf("id: TASK-%d\ntitle: T %[1]d\n", id)+front, body)
	}
	for _, status := range []string{
		"To Do", "todo", "IN PROGRESS", "inprogress", "'Won''t Do'", "\"In: Review\"", "Done # a comment", "'3'", "'yes'", "Elsewhere", "''",
	} {
		add("status: "+status+"\nassignee: []\ncreated_date: '2025-01-02 03:04'\n", "## Description\n- [ ] none\n")
	}
	add("", "without a status\n")
	for _, assignee := range []string{"@codex", "[@codex, '@ada']", "[]", "\n  - @codex\n  - '@ada'", "'@codex'", "ada"} {
		add("status: Done\nassignee: "+assignee+"\n", "")
	}
	for _, criteria := range []string{
		"## Acceptance Criteria\n<!-- AC:BEGIN -->\n- [x] #1 one\n- [ ] #2 two\n<!-- AC:END -->\n\n## Definition of Done\n- [ ] none\n",
		"## Acceptance Criteria\n<!-- AC:BEGIN -->\n<!-- AC:END -->\n",
		"## Acceptance Criteria\n- [x] one\n- [ ] two\n\n## Next\n- [ ] none\n",
		"## Acceptance Criteria (Optional)\n\n* [x] one\n+ [ ] two\n1. [x] three\n",
		"## acceptance criteria\n- [X] one\n  - [ ] nested\n- [] none\n- [-] none\n",
		"# Acceptance Criteria\n- [x] one\n",
		"### Acceptance Criteria\n- [x] one\n",
		"## Acceptance Criteria:\n- [x] one\n",
		"## Acceptance Criteria\n<!-- SECTION:A:BEGIN -->\n- [x] none\n<!-- SECTION:A:END -->\n- [x] one\n<!-- DOD:BEGIN -->\n- [ ] two\n",
		"## Acceptance Criteria\n<!-- AC:BEGIN -->\n- [x] #1 one\n",
		"## Acceptance Criteria\n<!-- AC:BEGIN -->\n```\n- [x] #1 one\n```\n- [ ] #2 two\n<!-- AC:END -->\n",
		"## Acceptance Criteria\n### Sub\n- [x] one\n### Sub\n- [ ] two\n# Top\n- [ ] three\n",
		"## Acceptance Criteria\r\n<!-- AC:BEGIN -->\r\n- [x] #1 one\r\n- [ ] #2 two\r\n<!-- AC:END -->\r\n",
		"## Acceptance Criteria\n<!-- AC:BEGIN -->\n- [x] no number\n-  [ ] #2 two\n -[ ] #3\n- [ ]#4 four\n- [ ]\n<!-- AC:END -->\n",
	} {
		add("status: To Do\n", criteria)
	}
	return files
}

type listedTask struct {
	ID, Title, Status string
	Done              int `json:"acceptanceCriteriaCompleted"`
	Total             int `json:"acceptanceCriteriaCount"`
	Labels            []string
}

func listTasks(t *testing.T, dir string) []listedTask {
	t.Helper()
	var listed struct{ Tasks []listedTask }
	list(t, tool(t, dir, "backlog", "task", "list", "--json"), &listed)
	return listed.Tasks
}

// fold returns a status as it is compared.
func fold(status string) string { return strings.ToLower(strings.Join(strings.Fields(status), "")) }

func TestTasksStandWhereBacklogSays(t *testing.T) {
	made := filepath.Join(t.TempDir(), "repository")
	write(t, made, tasks())
	for _, dir := range append([]string{made}, boardsIn(t, "backlog.md")...) {
		b := open(t, dir, "backlog.md")
		stages, paths := map[string]string{}, map[string]string{}
		for _, stage := range b.View().Stages {
			if _, exists := stages[fold(stage.Label)]; !exists {
				stages[fold(stage.Label)] = stage.Name
			}
		}
		run(t, exec.CommandContext(t.Context(), "git", "init", "-q", dir))
		want := map[string]standing{}
		for _, task := range listTasks(t, dir) {
			stage := stages[fold(task.Status)]
			if task.Status == "" {
				stage = "2_to_do"
			}
			want[task.ID] = standing{stage, domain.Criteria{Done: task.Done, Total: task.Total}}
			if d, err := b.Read(task.ID); err == nil {
				paths[task.ID] = d.Path
				if d.Name != task.Title {
					t.Errorf("%s: %q, the tool says %q", task.ID, d.Name, task.Title)
				}
			}
		}
		compare(t, want, standings(b, "_draft", "_completed", "_archived"), 30, func(id string) string {
			text, _ := os.ReadFile(filepath.Join(dir, paths[id]))
			return fmt.Sprintf("%.300s", text)
		})
	}
}

var updated = regexp.MustCompile(`(?m)^updated_date: '\d{4}-\d\d-\d\d \d\d:\d\d'$`)

func TestATaskThatIsMovedIsWrittenAsBacklogWritesIt(t *testing.T) {
	base := filepath.Join(t.TempDir(), "repository")
	write(t, base, map[string]string{"backlog/config.yml": config})
	run(t, exec.CommandContext(t.Context(), "git", "init", "-q", base))
	for _, args := range [][]string{
		{"Plain"},
		{"With: much, 'in' it", "-d", "A text\n\n---\nwith a line", "-a", "@codex,@ada", "-l", "a,b c", "--ac", "one", "--ac", "two", "--dod", "d"},
		{"Önly ünicode ✓", "--priority", "high", "--plan", "1. a", "--notes", "n", "-s", "In Progress"},
		{strings.Repeat("Long title ", 20), "-p", "TASK-1", "--dep", "TASK-2"},
		{"3 # yes", "-s", "Won't Do", "-d", "status: To Do\nupdated_date: '2020-01-01 00:00'"},
	} {
		run(t, tool(t, base, "backlog", append([]string{"task", "create"}, args...)...))
	}
	var ids []string
	for _, task := range listTasks(t, base) {
		ids = append(ids, task.ID)
	}
	if len(ids) != 5 {
		t.Fatalf("created: %v", ids)
	}
	for _, dir := range append([]string{base}, boardsIn(t, "backlog.md")...) {
		compareMoves(t, dir)
	}
}

// compareMoves moves all tasks to each status twice, by the tool and by us, and compares the files.
func compareMoves(t *testing.T, dir string) {
	t.Helper()
	ours := t.TempDir()
	if err := os.CopyFS(ours, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	run(t, exec.CommandContext(t.Context(), "git", "init", "-q", dir))
	var ids []string
	for _, task := range listTasks(t, dir) {
		ids = append(ids, task.ID)
	}
	b, equal := open(t, ours, "backlog.md"), 0
	for _, stage := range b.View().Stages {
		switch stage.Label {
		case "Draft", "Completed", "Archived":
			continue
		}
		run(t, tool(t, dir, "backlog", append([]string{"task", "edit", "-s", stage.Label}, ids...)...))
		for _, id := range ids {
			d, err := b.Read(id)
			if err != nil {
				t.Fatal(err)
			}
			if d, err = b.Change(t.Context(), id, board.Change{Version: d.Version, Stage: &stage.Name}); err != nil {
				t.Fatalf("%s to %s: %v", id, stage.Label, err)
			}
			want, got := content(t, dir, d.Path), content(t, ours, d.Path)
			if got, want := updated.ReplaceAllString(got, "updated_date"), updated.ReplaceAllString(want, "updated_date"); got != want {
				t.Errorf("%s to %s:\n%s\nthe tool writes\n%s", id, stage.Label, got, want)
				continue
			}
			equal++
		}
	}
	t.Logf("%d writes of %d tasks equal", equal, len(ids))
}

func content(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
