//go:build unix

package board

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/feed"
)

// benchLayouts are boards of 10,000 stories: their files, the one that changes to move story 7, and what changes in it.
var benchLayouts = map[string]func() (files map[string]string, file, old, new string){
	"openspec": func() (map[string]string, string, string, string) {
		files := map[string]string{}
		for i := range 10_000 {
			dir := fmt.Sprintf("openspec/changes/story-%d/", i)
			files[dir+"proposal.md"] = "# Story\n" + strings.Repeat("Some text of a story.\n", 50)
			files[dir+"tasks.md"] = strings.Repeat("- [ ] a task\n", 10)
		}
		return files, "openspec/changes/story-7/tasks.md", "- [ ] a", "- [x] a"
	},
	"backlog.md": func() (map[string]string, string, string, string) {
		files := map[string]string{"backlog/config.yml": "statuses: [To Do, Done]\n"}
		for i := range 10_000 {
			files[fmt.Sprintf("backlog/tasks/b-%d.md", i)] = fmt.Sprintf("---\nid: B-%d\ntitle: Story\nstatus: To Do\nlabels: []\n---\n", i) +
				strings.Repeat("Some text of a story.\n", 50)
		}
		return files, "backlog/tasks/b-7.md", "status: To Do", "status: Done"
	},
	"task-master": func() (map[string]string, string, string, string) {
		tasks := make([]string, 10_000)
		for i := range tasks {
			tasks[i] = fmt.Sprintf("      {\n        \"id\": %d,\n        \"title\": \"Story\",\n        \"details\": %q,\n        \"dependencies\": [],\n"+
				"        \"status\": \"pending\",\n        \"subtasks\": [{\"id\": 1, \"status\": \"done\"}]\n      }",
				i+1, strings.Repeat("Some text of a story.\n", 20))
		}
		text := "{\n  \"master\": {\n    \"tasks\": [\n" + strings.Join(tasks, ",\n") + "\n    ]\n  }\n}"
		return map[string]string{taskMasterFile: text}, taskMasterFile, `"pending"`, `"done"`
	},
	"bmad": func() (map[string]string, string, string, string) {
		files, status := map[string]string{}, "development_status:\n"
		for i := range 10_000 {
			status += fmt.Sprintf("  1-%d-some-story: backlog\n", i)
			files[fmt.Sprintf("docs/1-%d-some-story.md", i)] = "# Story\n- [x] a\n" + strings.Repeat("Some text of a story.\n", 50)
		}
		files["docs/sprint-status.yaml"] = status
		return files, "docs/sprint-status.yaml", "backlog", "done"
	},
}

// BenchmarkLayouts measures a first read of 10,000 stories, what stays in memory, and the time from one changed file to
// its event.
func BenchmarkLayouts(b *testing.B) {
	for layout, plant := range benchLayouts {
		files, file, from, to := plant()
		dir := b.TempDir()
		old := time.Now().Add(-time.Hour)
		for name, content := range files {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(content), 0o666),
				os.Chtimes(path, old, old)); err != nil {
				b.Fatal(err)
			}
		}
		recorded := make(chan struct{}, 1)
		open := func() *Board {
			board, err := Open(Options{
				Dir: dir, Layout: layout, Log: slog.New(slog.DiscardHandler),
				Record: func(...feed.Notification) { recorded <- struct{}{} },
			})
			if err != nil {
				b.Fatal(err)
			}
			return board
		}
		b.Run(layout+"/first read", func(b *testing.B) {
			before := heap()
			var board *Board
			for b.Loop() {
				board = open()
			}
			b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
			runtime.KeepAlive(board)
		})
		b.Run(layout+"/event", func(b *testing.B) {
			board := open()
			ctx, cancel := context.WithCancel(b.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = board.Run(ctx) })
			texts := [2]string{strings.Replace(files[file], from, to, 1), files[file]}
			for i := 0; b.Loop(); i++ {
				temp := filepath.Join(dir, "new")
				if err := errors.Join(os.WriteFile(temp, []byte(texts[i%2]), 0o666), os.Rename(temp, filepath.Join(dir, file))); err != nil {
					b.Fatal(err)
				}
				<-recorded
			}
			cancel()
			running.Wait()
		})
	}
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
