package board

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/waittest"
)

// TestAYAMLBombIsHarmless: the board stays as it was, at once and without much memory.
func TestAYAMLBombIsHarmless(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		old, now := string(rune('0'+i)), string(rune('1'+i))
		bomb += "a" + now + ": &a" + now + " [" + strings.Repeat("*a"+old+", ", 9) + "x]\n"
	}
	for layout, test := range map[string]struct {
		files         map[string]string
		file, content string
	}{
		"backlog.md": {backlogFiles(), "backlog/tasks/bomb.md", "---\nid: BACK-99\n" + bomb + "status: Done\n---\n"},
		"bmad":       {bmadBoard(), bmadStatus, bomb + bmadBoard()[bmadStatus]},
	} {
		b := openLayout(t, layout, test.files)
		before := b.shows()
		b.write(test.file, test.content)
		var from, to runtime.MemStats
		runtime.ReadMemStats(&from)
		start := time.Now()
		b.Board.mu.Lock()
		b.rescanAll()
		b.Board.mu.Unlock()
		runtime.ReadMemStats(&to)
		if b.shows() != before || b.View().Err != nil {
			t.Errorf("%s: %v\n%s", layout, b.View().Err, b.shows())
		}
		if took := time.Since(start); took > 10*time.Second || to.TotalAlloc-from.TotalAlloc > 64<<20 {
			t.Errorf("%s took %s and %d bytes", layout, took, to.TotalAlloc-from.TotalAlloc)
		}
	}
}

// TestAFileThatStaysBrokenTakesNoStoryAway, and nobody has moved when it is mended.
func TestAFileThatStaysBrokenTakesNoStoryAway(t *testing.T) {
	t.Parallel() // it waits
	for layout, test := range map[string]struct {
		files map[string]string
		file  string
	}{
		"task-master": {map[string]string{taskMasterFile: masterTasks}, taskMasterFile},
		"bmad":        {bmadBoard(), bmadStatus},
	} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			b := openLayout(t, layout, test.files)
			before, broken := b.shows(), time.Now()
			b.write(test.file, "<<<<<<< HEAD\n"+test.files[test.file])
			waittest.Until(t, "three times the grace", func() bool {
				b.Board.mu.Lock()
				defer b.Board.mu.Unlock()
				b.rescanAll()
				return time.Since(broken) > 3*grace
			})
			if b.shows() != before {
				t.Errorf("while it is broken:\n%s", b.shows())
			}
			b.write(test.file, test.files[test.file])
			b.Board.mu.Lock()
			b.rescanAll()
			b.Board.mu.Unlock()
			if b.shows() != before || b.moved() != "" {
				t.Errorf("when it is mended:\n%s\nmoves: %s", b.shows(), b.moved())
			}
		})
	}
}

// TestAHostileFileTakesLittleMemory: while four read a story of it.
func TestAHostileFileTakesLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes over a second of processor time")
	}
	fill := func(size int, head, part, tail string) string {
		return head + strings.Repeat(part, (size-len(head)-len(tail))/len(part)) + tail
	}
	for name, test := range map[string]struct {
		layout, file, content, story string
		most                         int64
	}{
		"empty subtasks": {"task-master", taskMasterFile, fill(15<<20, `{"tasks":[{"id":1,"subtasks":[`, `{},`, `{}]}]}`), "1", 12 * 15 << 20},
		"short statuses": {"bmad", bmadStatus, fill(1<<20, "development_status:\n  a: b\n", "  ? -\n", ""), "a", 12 << 20},
		"empty lists":    {"bmad", bmadStatus, fill(1<<20, "development_status:\n  a: b\nx: [", "[],", "]\n"), "a", 12 << 20},
		"dashes":         {"backlog.md", "backlog/tasks/1.md", fill(64<<10, "---\nid: BACK-99\nx:\n", "- ", "\n---\n"), "BACK-99", 16 << 20},
	} {
		b := openLayout(t, test.layout, map[string]string{bmadStatus: bmadBoard()[bmadStatus], taskMasterFile: masterTasks, "backlog/config.yml": "statuses: [To Do]\n", "backlog/tasks/0.md": "---\nid: BACK-0\n---\n"})
		grown := waittest.HeapGrowth(func() {
			b.write(test.file, test.content)
			b.Board.mu.Lock()
			b.rescanAll()
			b.Board.mu.Unlock()
			var readers sync.WaitGroup
			for range 4 {
				readers.Go(func() { _, _ = b.Read(test.story) })
			}
			readers.Wait()
		})
		if grown > test.most {
			t.Errorf("%s: %d MiB", name, grown>>20)
		}
	}
}

// TestStoriesOfOneFileAreReadAtOnce: 3,000 of them take a few times the memory of their file, not 3,000 times, and none is read
// for a caller who has left.
func TestStoriesOfOneFileAreReadAtOnce(t *testing.T) {
	var tasks []string
	text := strings.Repeat("x", 300)
	for i := range 3000 {
		tasks = append(tasks, fmt.Sprintf(`{"id":%d,"title":"Task %d","description":"%s"}`, i+1, i+1, text))
	}
	content := `{"tasks":[` + strings.Join(tasks, ",") + `]}`
	b := openLayout(t, "task-master", map[string]string{taskMasterFile: content})
	var stories []StoryInStage
	for _, stage := range b.View().Stages {
		for i := range stage.Stories {
			stories = append(stories, StoryInStage{&stage.Stories[i], stage.Name})
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read := 0
	err := b.ReadAll(t.Context(), stories, func(d *Details) bool {
		if d.Body == text {
			read++
		}
		return true
	})
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; err != nil || read != 3000 || allocated > 20*uint64(len(content)) {
		t.Errorf("%d stories of %d bytes take %d, %v", read, len(content), allocated, err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := b.ReadAll(gone, stories, func(*Details) bool { t.Error("a story is read"); return false }); err == nil {
		t.Error("it ends without an error")
	}
}
