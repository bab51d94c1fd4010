package boardtools_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/domain"
)

// TestTwoWritersLoseNothing: the tool adds a label to each of 100 tasks while we move each and tick a box, both in the same
// order.
func TestTwoWritersLoseNothing(t *testing.T) {
	const count = 100
	dir := filepath.Join(t.TempDir(), "repository")
	files := map[string]string{"backlog/config.yml": config}
	var ids []string
	for i := range count {
		id := fmt.Sprintf("TASK-%d", i+1)
		ids = append(ids, id)
		files[fmt.Sprintf("backlog/tasks/task-%d - T.md", i+1)] = task(
			"id: "+id+"\ntitle: T\nstatus: To Do\nassignee: []\ncreated_date: '2025-01-02 03:04'\nlabels: []\ndependencies: []\n",
			"## Acceptance Criteria\n<!-- AC:BEGIN -->\n- [ ] #1 one\n- [ ] #2 two\n<!-- AC:END -->\n"+strings.Repeat("text\n", 200))
	}
	write(t, dir, files)
	run(t, exec.CommandContext(t.Context(), "git", "init", "-q", dir))
	b := open(t, dir, "backlog.md")
	var all, writers sync.WaitGroup
	all.Go(func() { _ = b.Run(t.Context()) })
	t.Cleanup(all.Wait)
	var refused, conflicts, moves atomic.Int64
	room := make(chan struct{}, 4)
	for part := range slices.Chunk(ids, 25) {
		room <- struct{}{}
		labelled := make(chan struct{})
		writers.Go(func() {
			defer close(labelled)
			for left := part; len(left) > 0; {
				args := append([]string{"task", "edit", "--add-label", "tool"}, left...)
				out, err := tool(t, dir, "backlog", args...).CombinedOutput()
				if err != nil && !strings.Contains(string(out), "being modified by another process") {
					t.Errorf("%v: %s", err, out)
					return
				} else if err != nil {
					refused.Add(1)
				}
				left = slices.DeleteFunc(slices.Clone(left), func(id string) bool {
					text, err := os.ReadFile(filepath.Join(dir, "backlog/tasks", strings.ToLower(id)+" - T.md"))
					return err == nil && strings.Contains(string(text), "  - tool\n")
				})
			}
		})
		writers.Go(func() {
			defer func() { <-room }()
			w := writer{t: t, board: b, conflicts: &conflicts, stages: map[string]string{}}
			for _, id := range part {
				w.change(id, board.Change{Task: &board.TaskChange{Line: 14, Done: true}})
			}
			for last := false; !last && !t.Failed(); {
				select {
				case <-labelled:
					last = true
				default:
				}
				for _, id := range part {
					for _, stage := range []string{"11_done", "3_in_progress"} {
						w.change(id, board.Change{Stage: &stage})
						moves.Add(1)
					}
				}
			}
		})
	}
	writers.Wait()
	listed := listTasks(t, dir)
	if len(listed) != count {
		t.Errorf("the tool reads %d tasks", len(listed))
	}
	for _, task := range listed {
		if task.Status != "In Progress" || task.Done != 1 || task.Total != 2 || !slices.Equal(task.Labels, []string{"tool"}) {
			t.Errorf("%+v", task)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "backlog/tasks"))
	if err != nil || len(entries) != count {
		t.Errorf("%d files, %v", len(entries), err)
	}
	t.Logf("%d moves; the tool met our lock %d times, we met a task that had changed, or its lock, %d times",
		moves.Load(), refused.Load(), conflicts.Load())
}

// writer changes stories that others change too, but nobody else moves.
type writer struct {
	t         *testing.T
	board     *board.Board
	conflicts *atomic.Int64
	stages    map[string]string // where it has moved each story
}

// change makes a change, again until no other writer is in the way.
func (w writer) change(id string, c board.Change) {
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		d, err := w.board.Read(id)
		if err == nil {
			if was := cmp.Or(w.stages[id], "2_to_do"); d.Stage != was {
				w.t.Errorf("%s is in %s, was moved to %s: a move is lost", id, d.Stage, was)
				return
			}
			c.Version = d.Version
			d, err = w.board.Change(w.t.Context(), id, c)
		}
		if err == nil {
			w.stages[id] = d.Stage
			return
		}
		if code := domain.CodeOf(err); code != domain.Conflict && code != domain.NotFound {
			w.t.Errorf("%s: %v", id, err)
			return
		}
		w.conflicts.Add(1)
	}
	w.t.Errorf("%s cannot be changed for a minute", id)
}

// TestBacklogHonoursOurLock, which is a directory of a name that the tool uses as well.
func TestBacklogHonoursOurLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repository")
	write(t, dir, map[string]string{
		"backlog/config.yml":           config,
		"backlog/tasks/task-1 - T.md":  task("id: TASK-1\ntitle: T\nstatus: To Do\n", ""),
		"backlog/.locks/task-task-1/x": "",
	})
	// However long the tool takes to start, the lock is not too old for it.
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "backlog/.locks/task-task-1"), later, later); err != nil {
		t.Fatal(err)
	}
	out, err := tool(t, dir, "backlog", "task", "edit", "TASK-1", "-s", "Done").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(out), "being modified") {
		t.Errorf("%v: %s", err, out)
	}
}
