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

	"golang.org/x/sys/unix"

	"switchyard/internal/feed"
)

// benchBoardOf is a board of 10,000 stories: a file, and what changes in it when story 7 moves.
type benchBoardOf struct {
	files          map[string]string
	file, old, new string
}

var benchText = strings.Repeat("Some text of a story.\n", 50)

// benchFolders has what each story's folder has, of which one file has boxes.
func benchFolders(root, text, plan string) func() benchBoardOf {
	return func() benchBoardOf {
		b := benchBoardOf{map[string]string{}, root + "0007-story/tasks.md", "- [ ] a", "- [x] a"}
		for i := range 10_000 {
			dir := fmt.Sprintf("%s%04d-story/", root, i)
			b.files[dir+text] = "# Story\n" + benchText
			b.files[dir+"tasks.md"] = strings.Repeat("- [ ] a task\n", 10)
			if plan != "" {
				b.files[dir+plan] = "# Plan\n"
			}
		}
		return b
	}
}

var benchLayouts = []struct {
	layout string
	plant  func() benchBoardOf
}{
	{"stages", func() benchBoardOf {
		b := benchBoardOf{map[string]string{}, "2_s/7.md", "name: ", "blocked: true\nname: "}
		for i := range 10_000 {
			b.files[fmt.Sprintf("%d_s/%d.md", i%5, i)] = fmt.Sprintf("---\nname: Story %d\n---\n", i) + benchText
		}
		return b
	}},
	{"openspec", benchFolders("openspec/changes/", "proposal.md", "")},
	{"spec-kit", benchFolders("specs/", "spec.md", "plan.md")},
	{"kiro", benchFolders(".kiro/specs/", "requirements.md", "design.md")},
	{"backlog.md", func() benchBoardOf {
		b := benchBoardOf{
			map[string]string{"backlog/config.yml": "statuses: [To Do, Done]\n"}, "backlog/tasks/b-7.md", "status: To Do", "status: Done",
		}
		for i := range 10_000 {
			b.files[fmt.Sprintf("backlog/tasks/b-%d.md", i)] = fmt.Sprintf(
				"---\nid: B-%d\ntitle: Story\nstatus: To Do\nlabels: []\n---\n", i) + benchText
		}
		return b
	}},
	{"task-master", func() benchBoardOf {
		tasks := make([]string, 10_000)
		for i := range tasks {
			tasks[i] = fmt.Sprintf("      {\n        \"id\": %d,\n        \"title\": \"Story\",\n        \"details\": %q,\n"+
				"        \"dependencies\": [],\n        \"status\": \"pending\",\n        \"subtasks\": [{\"id\": 1, \"status\": \"done\"}]\n      }",
				i+1, benchText[:len(benchText)*2/5])
		}
		text := "{\n  \"master\": {\n    \"tasks\": [\n" + strings.Join(tasks, ",\n") + "\n    ]\n  }\n}"
		return benchBoardOf{map[string]string{taskMasterFile: text}, taskMasterFile, `"pending"`, `"done"`}
	}},
	{"bmad", func() benchBoardOf {
		b := benchBoardOf{map[string]string{}, "docs/sprint-status.yaml", "backlog", "done"}
		status := "development_status:\n"
		for i := range 10_000 {
			status += fmt.Sprintf("  1-%d-some-story: backlog\n", i)
			b.files[fmt.Sprintf("docs/1-%d-some-story.md", i)] = "# Story\n- [x] a\n" + benchText
		}
		b.files[b.file] = status
		return b
	}},
	{"beads", func() benchBoardOf { // bd itself is none of ours
		issues := make([]string, 10_000)
		for i := range issues {
			issues[i] = fmt.Sprintf(`{"id":"bd-%d","title":"Story","description":%q,"status":"open","issue_type":"task"}`,
				i, benchText[:len(benchText)*2/5])
		}
		said := "[" + strings.Join(issues, ",\n") + "]"
		return benchBoardOf{map[string]string{".beads/issues.json": said}, ".beads/issues.json", `"open"`, `"closed"`}
	}},
}

// BenchmarkLayouts measures for each layout a first read of 10,000 stories, what stays in memory, and how long it takes from
// one changed file to its event: in CPU time, too, which other processes do not lengthen. Between the two there are
// 10 ms of waiting for the end of a burst, with beads up to 2 s.
func BenchmarkLayouts(b *testing.B) {
	bin := b.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "bd"), []byte("#!/bin/sh\nexec cat .beads/issues.json\n"), 0o755); err != nil {
		b.Fatal(err)
	}
	b.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for _, bench := range benchLayouts {
		planted := bench.plant()
		dir := b.TempDir()
		old := time.Now().Add(-time.Hour)
		for name, content := range planted.files {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(content), 0o666),
				os.Chtimes(path, old, old)); err != nil {
				b.Fatal(err)
			}
		}
		text, file := planted.files[planted.file], planted.file
		texts := [2]string{strings.Replace(text, planted.old, planted.new, 1), text}
		planted.files = nil
		recorded := make(chan struct{}, 1)
		open := func() *Board {
			board, err := Open(Options{
				Dir: dir, Layout: strings.TrimPrefix(bench.layout, "stages"), Log: slog.New(slog.DiscardHandler),
				Record: func(...feed.Notification) { recorded <- struct{}{} },
			})
			if err != nil {
				b.Fatal(err)
			}
			return board
		}
		b.Run(bench.layout+"/first read", func(b *testing.B) {
			before, used := heap(), cpu(b)
			var board *Board
			for b.Loop() {
				board = open()
			}
			b.ReportMetric((cpu(b)-used)/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
			runtime.KeepAlive(board)
		})
		b.Run(bench.layout+"/event", func(b *testing.B) {
			board := open()
			ctx, cancel := context.WithCancel(b.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = board.Run(ctx) })
			change := func(i int) {
				temp := dir + ".new"
				if err := errors.Join(os.WriteFile(temp, []byte(texts[i%2]), 0o666), os.Rename(temp, filepath.Join(dir, file))); err != nil {
					b.Fatal(err)
				}
				for moved := false; !moved; { // in stages a block is an event, its end none
					select {
					case <-recorded:
						moved = true
					case <-time.After(time.Second):
						moved = bench.layout == "stages" && i%2 == 1
					}
				}
			}
			change(0)                // after which everything has been read, and is watched
			<-time.After(coarseTick) // files that have just been made are read again
			change(1)
			used := cpu(b)
			for i := 0; b.Loop(); i++ {
				change(i)
				b.StopTimer()
				<-time.After(50 * time.Millisecond) // a change that comes at once waits for the rest after a scan as well
				b.StartTimer()
			}
			b.ReportMetric((cpu(b)-used)/float64(b.N), "cpu-ms/op")
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

// cpu returns the CPU time that the process has used, in milliseconds.
func cpu(b *testing.B) float64 {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e6
}
