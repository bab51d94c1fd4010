package gitlog_test

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"testing"

	"switchyard/internal/board"
	"switchyard/internal/gitlog"
	"switchyard/internal/waittest"
)

type stillBoard struct{ view *board.View }

func (stillBoard) Past() board.Past { return board.Past{} }

func (b stillBoard) View() *board.View { return b.view }

// BenchmarkFirstPass20000 measures the first pass for 200 stories in a repository of 20,000 commits, each of which mentions a
// story.
func BenchmarkFirstPass20000(b *testing.B) {
	const commits, stories = 20_000, 200
	dir := b.TempDir()
	var stream strings.Builder
	for i := range commits {
		message := fmt.Sprintf("%d_story: change %d\n\n%s", i%stories, i, strings.Repeat("Some words on what was done, and why it was. ", 8))
		content := fmt.Sprintf("content %d\n", i)
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter Ada <ada@example.org> %d +0000\ndata %d\n%s\nM 644 inline file%d\ndata %d\n%s\n",
			1_700_000_000+i, len(message), message, i%500, len(content), content)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"fast-import", "--quiet"}} {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Stdin = strings.NewReader(stream.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	stage := board.Stage{Name: "1_backlog"}
	for i := range stories {
		stage.Stories = append(stage.Stories, board.Story{ID: fmt.Sprintf("%d_story", i)})
	}
	still := stillBoard{&board.View{Stages: []board.Stage{stage}}}
	for b.Loop() {
		log := gitlog.New(gitlog.Options{Dir: dir, Board: still, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error)
		go func() { ended <- log.Run(ctx) }()
		waittest.Until(b, "commits", func() bool { return len(log.Commits("7_story")) == 50 })
		cancel()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
	}
}
