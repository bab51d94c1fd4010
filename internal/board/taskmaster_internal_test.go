package board

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"switchyard/internal/waittest"
)

const masterTasks = `{
  "master": {
    "tasks": [
      {
        "id": 1,
        "title": "Log in",
        "status": "done",
        "subtasks": [
          {"id": 1, "status": "done"},
          {"id": 2, "status": "pending"}
        ]
      },
      {
        "id": "2",
        "title": "Log out",
        "description": "Short.",
        "details": "Long.",
        "status": "pending",
        "subtasks": []
      },
      {
        "id": 3,
        "title": "Register",
        "status": "blocked",
        "previousStatus": "in-progress"
      },
      {"id": 4, "title": ["no text"], "status": "completed", "subtasks": {}},
      {"id": 5, "title": "Forget", "status": "on hold"},
      17
    ],
    "metadata": {
      "created": "2025-06-14T21:30:21.214Z",
      "lastModified": "2025-06-14T21:30:21.214Z"
    }
  }
}`

var now = regexp.MustCompile(`"20[0-9-]{8}T[0-9:]{8}\.[0-9]{3}Z"`)

func TestTaskMastersTasksStandWhereTheirStatusSays(t *testing.T) {
	b := openLayout(t, "task-master", map[string]string{taskMasterFile: masterTasks})
	want := "1_pending: 2 (Log out)\n2_in_progress: 3 (Register) blocked: The status of the task is blocked.\n4_done: 1 (Log in) 1/2\n" +
		"4_done: 4 (4)\n7_on_hold: 5 (Forget)"
	if b.shows() != want {
		t.Fatalf("got\n%s\nwant\n%s", b.shows(), want)
	}
	d, err := b.Read("2")
	if err != nil || d.Path != taskMasterFile || d.Body != "Short.\n\nLong." || !strings.Contains(string(d.FrontMatter), `"id": "2"`) {
		t.Errorf("%+v, %v", d, err)
	}
	b.write(taskMasterFile, masterTasks[:200]) // half written
	b.write(taskMasterFile, strings.Replace(masterTasks, `"status": "pending",
        "subtasks": []`, `"status": "blocked"`, 1))
	waittest.Until(t, "the block", func() bool { return strings.Contains(b.shows(), "1_pending: 2 (Log out) blocked") })
	if moves := b.moved(); strings.Contains(moves, "_") && !strings.HasPrefix(moves, "2") {
		t.Errorf("moves: %s", moves)
	}
}

// TestATagThatComesMovesNobody, though the tasks of several tags have other ids.
func TestATagThatComesMovesNobody(t *testing.T) {
	b := openLayout(t, "task-master", map[string]string{taskMasterFile: masterTasks})
	b.write(taskMasterFile, strings.Replace(masterTasks, "{\n", `{ "a/b": {"tasks": [{"id": 1, "title": "Other", "status": "review"}]},`+"\n", 1))
	waittest.Until(t, "the tag", func() bool { return strings.Contains(b.shows(), "3_review: a/b/1 (Other)") })
	if !strings.Contains(b.shows(), "4_done: master/1 (Log in) 1/2") || b.moved() != "" {
		t.Errorf("%s\nmoves: %s", b.shows(), b.moved())
	}
	done := "4_done"
	if err := b.change("a/b/1", Change{Stage: &done}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.content(taskMasterFile), `{"id": 1, "title": "Other", "status": "done", "updatedAt": "`) {
		t.Errorf("%.300s", b.content(taskMasterFile))
	}
}

// TestATaskIsMovedAsTaskMasterItselfDoes is a change that the tool was seen to make.
func TestATaskIsMovedAsTaskMasterItselfDoes(t *testing.T) {
	t.Parallel() // it waits
	b := openLayout(t, "task-master", map[string]string{taskMasterFile: masterTasks})
	review, done := "3_review", "4_done"
	if err := b.change("2", Change{Stage: &review}); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(masterTasks, "\"status\": \"pending\",\n        \"subtasks\": []", "\"status\": \"review\",\n        \"subtasks\": [],\n        \"updatedAt\": NOW", 1)
	want = strings.Replace(want, `"lastModified": "2025-06-14T21:30:21.214Z"`, `"lastModified": NOW`, 1)
	got := b.content(taskMasterFile)
	times := now.FindAllString(got, -1)
	if len(times) != 3 || times[0] != times[2] || now.ReplaceAllString(got, "NOW") != now.ReplaceAllString(want, "NOW") {
		t.Errorf("%s\n%v", got, times)
	}
	if err := b.change("2", Change{Stage: &done}); err != nil || strings.Count(b.content(taskMasterFile), "updatedAt") != 1 {
		t.Errorf("%v: %s", err, b.content(taskMasterFile))
	}
	if err := b.change("3", Change{Stage: &done}); err != nil || strings.Contains(b.content(taskMasterFile), `"blocked"`) {
		t.Errorf("%v: %s", err, b.content(taskMasterFile))
	}
	lock := filepath.Join(b.dir, taskMasterFile+".lock")
	if err := os.Mkdir(lock, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := b.change("2", Change{Stage: &review}); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("held by another: %v", err)
	}
}

// TestManyWritersOfOneFileLoseNothing: each moves a task of its own, at once.
func TestManyWritersOfOneFileLoseNothing(t *testing.T) {
	var tasks []string
	for _, id := range strings.Split("a b c d e f g h i j k l m n o p", " ") {
		tasks = append(tasks, `{"id": "`+id+`", "title": "T", "status": "pending"}`)
	}
	b := openLayout(t, "task-master", map[string]string{taskMasterFile: `{"tasks": [` + strings.Join(tasks, ",") + "]}"})
	var wait sync.WaitGroup
	done := "4_done"
	for _, story := range b.View().Stages[0].Stories {
		wait.Go(func() {
			if err := b.change(story.ID, Change{Stage: &done}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if n := strings.Count(b.shows(), "4_done"); n != len(tasks) {
		t.Errorf("%d of %d are moved:\n%s", n, len(tasks), b.content(taskMasterFile))
	}
}

// TestAFileOfTasksThatIsTooMuchIsRefused without much memory.
func TestAFileOfTasksThatIsTooMuchIsRefused(t *testing.T) {
	b := openLayout(t, "task-master", map[string]string{taskMasterFile: masterTasks})
	for name, content := range map[string]string{
		"20 MB":         `{"tasks": [` + strings.Repeat(`{"id": 1, "title": "x"},`, 900_000) + `1]}`,
		"many values":   `{"tasks": [` + strings.Repeat("1,", 4_000_000) + `1]}`,
		"deeply nested": `{"tasks": ` + strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000) + `}`,
	} {
		before := b.shows()
		b.Board.mu.Lock() // nobody reads half of it
		b.write(taskMasterFile, content)
		b.rescanAll()
		b.Board.mu.Unlock()
		if b.shows() != before {
			t.Errorf("%s: %.200s", name, b.shows())
		}
	}
}

// TestTasksAreThoseOfAFirstReadWhateverHasChanged, though only those that have are decoded.
func TestTasksAreThoseOfAFirstReadWhateverHasChanged(t *testing.T) {
	task := func(id int, status string) string {
		return fmt.Sprintf(`{"id":%d,"title":"T%d","status":%q}`, id, id, status)
	}
	file := func(tasks ...string) pastFiles {
		return pastFiles{taskMasterFile: `{"a":{"tasks":[` + strings.Join(tasks, ",") + `]},"a/b":{"tasks":[` + task(1, "done") + `]}}`}
	}
	f := taskMasterRules{several: true}
	show := func(entries []entry, err error) (text string) {
		for _, e := range entries {
			r := e.record()
			text += fmt.Sprintln(e.id, e.stage, r.name, r.blocked, string(r.version))
		}
		return text + fmt.Sprint(err)
	}
	one, two, three := task(1, "done"), task(2, "pending"), task(3, "blocked")
	var old []entry
	for _, files := range []pastFiles{
		file(one, two, three), file(one, task(2, "review"), three), file(one, three), file(two, one, three), file(one, one, two), file(),
		file(three, "17", two, "{}", one), file(one, `{"id":`), file(task(1, "review"), task(2, "done"), task(3, "done"), task(4, "done")),
	} {
		entries, err := f.stories("", files, old)
		if got, want := show(entries, err), show(f.stories("", files, nil)); got != want {
			t.Errorf("after other tasks\n%s\nat once\n%s", got, want)
		}
		old = entries
	}
}
