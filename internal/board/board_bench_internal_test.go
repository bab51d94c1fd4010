//go:build unix

package board

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/feed"
)

// BenchmarkRescan10000 scans 10,000 unchanged items.
func BenchmarkRescan10000(b *testing.B) {
	board := benchBoard(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := board.scan(nil, false); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen10000 scans 10,000 items for the first time, which reads each.
func BenchmarkOpen10000(b *testing.B) {
	board := benchBoard(b, 10_000)
	for b.Loop() {
		if _, err := Open(Options{Dir: board.dir, Log: board.log}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMove measures the time from a move to its event.
func BenchmarkMove(b *testing.B) {
	for _, items := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(items), func(b *testing.B) {
			board := benchBoard(b, items)
			recorded := make(chan struct{}, 1)
			board.record = func(...feed.Notification) { recorded <- struct{}{} }
			ctx, cancel := context.WithCancel(b.Context())
			var running sync.WaitGroup
			running.Go(func() {
				if err := board.Run(ctx); err != nil {
					b.Error(err)
				}
			})
			from, to := filepath.Join(board.dir, "2_s", "1.md"), filepath.Join(board.dir, "3_s", "1.md")
			for b.Loop() {
				if err := os.Rename(from, to); err != nil {
					b.Fatal(err)
				}
				<-recorded
				from, to = to, from
			}
			cancel()
			running.Wait()
		})
	}
}

func benchBoard(b *testing.B, items int) *Board {
	dir := b.TempDir()
	body := strings.Repeat("Some text of a story.\n", 100)
	for i := range items {
		path := filepath.Join(dir, fmt.Sprintf("%d_s", i%6+1), fmt.Sprintf("%d.md", i))
		if err := os.Mkdir(filepath.Dir(path), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			b.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		content := fmt.Sprintf("---\nname: Story %d\nblocked: %t\n---\n%s", i, i%10 == 0, body)
		if err := errors.Join(os.WriteFile(path, []byte(content), 0o666), os.Chtimes(path, old, old)); err != nil {
			b.Fatal(err)
		}
	}
	board, err := Open(Options{Dir: dir, Log: slog.New(slog.DiscardHandler), Record: func(...feed.Notification) {}})
	if err != nil {
		b.Fatal(err)
	}
	return board
}
