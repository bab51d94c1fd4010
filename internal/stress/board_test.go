//go:build stress

package stress

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

var stages = []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done", "6_archived"}

// board is a work directory in which stories move from stage to stage and never back, so that no two moves are the same.
type board struct {
	t       *testing.T
	dir     string
	stories int

	mu    sync.Mutex
	moves []move
}

type move struct {
	name string // see event.move
	at   time.Time
}

func newBoard(t *testing.T, dir string, stories int) *board {
	t.Helper()
	b := &board{t: t, dir: dir, stories: stories}
	for _, stage := range stages {
		if err := os.MkdirAll(filepath.Join(dir, stage), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i := range stories {
		text := fmt.Sprintf("---\nname: Story number %d\n---\n", i)
		if err := os.WriteFile(filepath.Join(dir, stages[0], fmt.Sprintf("%d_story.md", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// move makes the next moves.
func (b *board) move(count int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range count {
		story, stage := len(b.moves)%b.stories, len(b.moves)/b.stories
		if stage+1 == len(stages) {
			b.t.Errorf("%s: too few stories", b.dir)
			return
		}
		name := fmt.Sprintf("%d_story", story)
		m := move{moveName(name, stages[stage], stages[stage+1]), time.Now()}
		if err := os.Rename(filepath.Join(b.dir, stages[stage], name+".md"), filepath.Join(b.dir, stages[stage+1], name+".md")); err != nil {
			b.t.Error(err)
		}
		b.moves = append(b.moves, m)
	}
}

// last returns the latest move.
func (b *board) last() move {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.moves[len(b.moves)-1]
}

func moveName(story, from, to string) string { return story + ": " + from + " → " + to }

// keepMoving moves stories until ctx ends.
func (b *board) keepMoving(ctx context.Context) {
	every := time.NewTicker(200 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			b.move(1)
		case <-ctx.Done():
			return
		}
	}
}
