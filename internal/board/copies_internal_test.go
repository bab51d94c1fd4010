package board

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

// openCase opens a board of testdata.
func openCase(t *testing.T, layout, name string) *layoutBoard {
	t.Helper()
	files, dir := map[string]string{}, filepath.Join("testdata", name)
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir+"/")] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return openLayout(t, layout, files)
}

func (b *layoutBoard) until(want string) {
	b.t.Helper()
	waittest.Until(b.t, want, func() bool { return b.shows() == want })
}

// move moves a story, and waits until that is all that the board has told.
func (b *layoutBoard) move(id, stage, told string) {
	b.t.Helper()
	if err := b.change(id, Change{Stage: &stage}); err != nil {
		b.t.Fatal(err)
	}
	waittest.Until(b.t, told, func() bool { return strings.HasSuffix(b.moved(), told) })
	if b.moved() != told {
		b.t.Errorf("it told\n%s", b.moved())
	}
}

func (b *layoutBoard) rename(from, to string) {
	b.t.Helper()
	if err := os.Rename(filepath.Join(b.dir, from), filepath.Join(b.dir, to)); err != nil {
		b.t.Fatal(err)
	}
}

const flour, oven = "backlog/tasks/task-4 - Order-flour.md", "backlog/tasks/task-4 - Clean-the-oven.md"

func TestTwoFilesOfOneIDAreTwoStories(t *testing.T) {
	t.Parallel()
	b := openCase(t, domain.LayoutBacklog, "two-files-one-id")
	b.until("2_to_do: task-4 (Order flour) 1/2\n3_in_progress: task-4~2 (Clean the oven) 1/2")
	if d, err := b.Read("task-4~2"); err != nil || d.Path != oven || d.ID != "task-4~2" {
		t.Errorf("%+v, %v", d, err)
	}
	faults := b.View().Faults
	if len(faults) != 1 || faults[0].Kind != domain.FaultDuplicate || faults[0].Path != oven || faults[0].StoryID != "task-4~2" {
		t.Errorf("%+v", faults)
	}
	b.move("task-4~2", "4_done", "task-4~2 3_in_progress 4_done")
	if !strings.Contains(b.content(oven), "status: Done") || !strings.Contains(b.content(flour), "status: To Do") {
		t.Error("another file was written")
	}
}

// TestAnIDThatComesOrGoesMovesNobody: the last of each is a move, which is all that is told.
func TestAnIDThatComesOrGoesMovesNobody(t *testing.T) {
	const both = "2_to_do: task-4 (Order flour) 1/2\n3_in_progress: task-4~2 (Clean the oven) 1/2"
	edit := func(b *layoutBoard, path, old, with string) {
		b.write(path, strings.Replace(b.content(path), old, with, 1))
	}
	for name, test := range map[string]struct {
		do      func(b *layoutBoard)
		want    string
		id, did string
	}{
		"a name by case only": {func(b *layoutBoard) {
			edit(b, oven, "2026-05-03", "2026-05-01") // as old as the other, so that the names decide
			b.until("2_to_do: task-4~2 (Order flour) 1/2\n3_in_progress: task-4 (Clean the oven) 1/2")
			b.rename(flour, "backlog/tasks/Task-4 - Order-flour.md")
		}, both, "task-4", "task-4 2_to_do 4_done"},
		"one more, older": {func(b *layoutBoard) {
			b.write("backlog/tasks/task-4 - Sweep.md", "---\nid: task-4\ntitle: Sweep\nstatus: Done\ncreated_date: '2026-04-01'\n---\n")
		}, "2_to_do: task-4~2 (Order flour) 1/2\n3_in_progress: task-4~3 (Clean the oven) 1/2\n4_done: task-4 (Sweep)", "task-4~2", "task-4~2 2_to_do 4_done"},
		"the first goes": {func(b *layoutBoard) {
			if err := os.Remove(filepath.Join(b.dir, flour)); err != nil {
				b.t.Fatal(err)
			}
		}, "3_in_progress: task-4 (Clean the oven) 1/2", "task-4", "task-4 3_in_progress 4_done"},
		"the second is renumbered": {func(b *layoutBoard) {
			edit(b, oven, "id: task-4", "id: task-5")
		}, "2_to_do: task-4 (Order flour) 1/2\n3_in_progress: task-5 (Clean the oven) 1/2", "task-5", "task-5 3_in_progress 4_done"},
		"ids are exchanged": {func(b *layoutBoard) {
			edit(b, oven, "id: task-4", "id: task-5")
			b.until("2_to_do: task-4 (Order flour) 1/2\n3_in_progress: task-5 (Clean the oven) 1/2")
			b.Board.mu.Lock() // so that both are seen at once
			edit(b, oven, "id: task-5", "id: task-4")
			edit(b, flour, "id: task-4", "id: task-5")
			b.Board.mu.Unlock()
		}, "2_to_do: task-5 (Order flour) 1/2\n3_in_progress: task-4 (Clean the oven) 1/2", "task-4", "task-4 3_in_progress 4_done"},
		"one takes over the id": {func(b *layoutBoard) {
			edit(b, oven, "id: task-4", "id: task-5")
			b.until("2_to_do: task-4 (Order flour) 1/2\n3_in_progress: task-5 (Clean the oven) 1/2")
			b.Board.mu.Lock()
			if err := os.Remove(filepath.Join(b.dir, flour)); err != nil {
				b.t.Error(err)
			}
			edit(b, oven, "id: task-5", "id: task-4")
			b.Board.mu.Unlock()
		}, "3_in_progress: task-4 (Clean the oven) 1/2", "task-4", "task-4 3_in_progress 4_done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openCase(t, domain.LayoutBacklog, "two-files-one-id")
			test.do(b)
			b.until(test.want)
			b.move(test.id, "4_done", test.did)
		})
	}
}

// TestACopyWhoseOriginalGoesIsAMove of the one story, at once, and a new name is none.
func TestACopyWhoseOriginalGoesIsAMove(t *testing.T) {
	t.Parallel()
	const task, copied = "backlog/tasks/task-1 - A.md", "backlog/completed/task-1 - A.md"
	b := openLayout(t, domain.LayoutBacklog, map[string]string{
		"backlog/config.yml": "statuses: [To Do, Done]\n", task: "---\nid: task-1\ntitle: A\nstatus: Done\n---\n",
		"backlog/completed/x.md": "",
	})
	b.write(copied, b.content(task))
	waittest.Until(t, "the copy to be seen", func() bool {
		b.Board.mu.Lock()
		defer b.Board.mu.Unlock()
		return len(b.layout.(*units).waits) == 1
	})
	if err := os.Remove(filepath.Join(b.dir, task)); err != nil {
		t.Fatal(err)
	}
	b.until("4_completed: task-1 (A)")
	b.rename(copied, "backlog/completed/task-1 - B.md")
	waittest.Until(t, "the new name", func() bool { d, err := b.Read("task-1"); return err == nil && strings.HasSuffix(d.Path, "B.md") })
	if b.moved() != "task-1 3_done 4_completed" || len(b.View().Faults) > 0 {
		t.Errorf("%s, %+v", b.moved(), b.View().Faults)
	}
}

func TestTwoTasksOfOneIDInAListAreTwoStories(t *testing.T) {
	t.Parallel()
	const first, second = `{"id": 1, "title": "Bread", "status": "done"}`, `{"id": 1, "title": "Cake", "status": "pending"}`
	b := openLayout(t, domain.LayoutTaskMaster, map[string]string{taskMasterFile: `{"tasks": [` + first + "," + second + "]}"})
	b.until("1_pending: 1~2 (Cake)\n4_done: 1 (Bread)")
	if faults := b.View().Faults; len(faults) != 1 || faults[0].StoryID != "1~2" || !strings.Contains(faults[0].Text, "the id 1 twice") {
		t.Errorf("%+v", faults)
	}
	b.write(taskMasterFile, `{"tasks": [`+second+"]}")
	b.until("1_pending: 1 (Cake)")
	b.write(taskMasterFile, `{"tasks": [`+second+","+first+"]}")
	b.until("1_pending: 1 (Cake)\n4_done: 1~2 (Bread)")
	b.move("1~2", "3_review", "1~2 4_done 3_review")
	if text := b.content(taskMasterFile); !strings.Contains(text, second) || !strings.Contains(text, `"Bread", "status": "review"`) {
		t.Error(text)
	}
}
