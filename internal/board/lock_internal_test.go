//go:build unix

package board

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
)

// TestALockThatCannotBeMadeIsNoLockOfAnotherTool: it is said at once, and nothing is made in a board that is gone.
func TestALockThatCannotBeMadeIsNoLockOfAnotherTool(t *testing.T) {
	for name, plant := range map[string]func(locks string) error{
		"a file":   func(locks string) error { return os.WriteFile(locks, nil, 0o666) },
		"dangling": func(locks string) error { return os.Symlink("../none", locks) },
		"gone":     func(locks string) error { return os.RemoveAll(filepath.Dir(locks)) },
	} {
		b := openQuietly(t, "backlog.md", map[string]string{
			"backlog/config.yml": "statuses: [To Do, Done]\n", "backlog/tasks/b-1.md": "---\nid: B-1\nstatus: Done\n---\n",
		})
		locks := filepath.Join(b.dir, "backlog", ".locks")
		if err := plant(locks); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := b.layout.lock(context.Background(), "B-1"); err == nil || errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(began); took >= lockWait {
			t.Errorf("%s: it waited %v", name, took)
		}
		if _, err := os.Stat(filepath.Dir(locks)); name == "gone" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the board was made again: %v", err)
		}
	}
}

// TestALockThatIsNotEmptyIsNeverTakenOver: the wait for it ends after a while, or with its caller, and leaves nothing.
func TestALockThatIsNotEmptyIsNeverTakenOver(t *testing.T) {
	b := openQuietly(t, "backlog.md", map[string]string{
		"backlog/config.yml": "statuses: [To Do, Done]\n", "backlog/tasks/b-1.md": "---\nid: B-1\nstatus: Done\n---\n",
		"backlog/.locks/task-b-1/kept": "",
	})
	lock, old := filepath.Join(b.dir, "backlog/.locks/task-b-1"), time.Now().Add(-time.Hour)
	if err := os.Chtimes(lock, old, old); err != nil {
		t.Fatal(err)
	}
	descriptors := func() int {
		open, _ := os.ReadDir("/dev/fd")
		return len(open)
	}
	before := descriptors()
	left, leave := context.WithCancel(t.Context())
	leave()
	for ctx, want := range map[context.Context]time.Duration{t.Context(): lockWait, left: 0} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, err := b.layout.lock(ctx, "B-1")
			if domain.CodeOf(err) != domain.Conflict || !strings.Contains(err.Error(), "locked") {
				t.Error(err)
			}
			if took := time.Since(began); took != want {
				t.Errorf("it waited %v, want %v", took, want)
			}
		})
	}
	if now := descriptors(); now > before {
		t.Errorf("%d descriptors are left", now-before)
	}
	if _, err := os.Stat(filepath.Join(lock, "kept")); err != nil {
		t.Error(err)
	}
}

// TestACodeBlockEndsWhateverSpaceFollows in layouts whose tools trim lines.
func TestACodeBlockEndsWhateverSpaceFollows(t *testing.T) {
	for _, end := range []string{"```", "```\u00a0", "```\f", "```\u3000", "```\r "} {
		text := "```\n- [ ] 0. none\n" + end + "\n- [x] 1. one\n- [ ] 2. two\n"
		b := openQuietly(t, "kiro", map[string]string{".kiro/specs/login/tasks.md": text})
		found := 0
		for _, stage := range b.View().Stages {
			for _, story := range stage.Stories {
				found = story.Criteria.Total
			}
		}
		if found != 2 {
			t.Errorf("after %q there are %d boxes", end, found)
		}
	}
}
