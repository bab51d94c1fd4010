//go:build unix

package board

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"

	"switchyard/internal/waittest"
)

func (l *live) git(dir string, args ...string) {
	l.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true")
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// TestARebaseIsOneChange: of stories that a rebase moves there and back only those are recorded that are elsewhere afterwards.
func TestARebaseIsOneChange(t *testing.T) {
	for name, where := range map[string]string{"work tree": "", "linked worktree": "../linked"} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"1_backlog/other.md": "other", "2_current/.keep": "", "3_qa/.keep": ""}
			for i := range 10 {
				files[fmt.Sprintf("1_backlog/s%d.md", i)] = fmt.Sprintf("story %d, unlike any other: %[1]d %[1]d %[1]d", i)
			}
			l := newLive(t, files)
			l.git(l.dir, "init", "-q", "-b", "main")
			l.git(l.dir, "add", ".")
			l.git(l.dir, "commit", "-qm", "board")
			l.git(l.dir, "branch", "moves")
			l.git(l.dir, "mv", "1_backlog/other.md", "2_current/")
			l.git(l.dir, "commit", "-qm", "other")
			dir := l.dir
			if where == "" {
				l.git(l.dir, "checkout", "-q", "moves")
			} else {
				dir = filepath.Join(l.dir, where)
				l.git(l.dir, "worktree", "add", "-q", dir, "moves")
			}
			for i := range 10 {
				l.git(dir, "mv", fmt.Sprintf("1_backlog/s%d.md", i), []string{"2_current", "3_qa"}[i%2])
				l.git(dir, "commit", "-qm", fmt.Sprint("move ", i))
			}
			board, err := Open(Options{Dir: dir, Log: l.log, Record: l.record})
			if err != nil {
				t.Fatal(err)
			}
			l.Board, l.dir = board, dir
			l.run()
			l.git(dir, "rebase", "-q", "main")
			l.next("other 1_backlog>2_current")
			l.move("2_current/other.md", "3_qa/other.md")
			l.next("other 2_current>3_qa")
		})
	}
}

func TestAScanWaitsForGitTenSecondsAtMost(t *testing.T) {
	for _, marker := range []string{"index.lock", "rebase-merge", "rebase-apply"} {
		inBubble(t, func(b *bubble) {
			b.write("../.git/HEAD", "")
			marker := filepath.Join("../.git", marker)
			b.write(marker, "")
			b.move("2_current/a.md", "3_qa/a.md")
			b.events <- fsnotify.Event{}
			b.within(gitPatience/2, "")
			b.remove(marker)
			b.within(gitPoll, "a 2_current>3_qa")
			b.write(marker, "") // and stays
			b.move("3_qa/a.md", "2_current/a.md")
			b.events <- fsnotify.Event{}
			b.within(gitPatience-gitPoll, "")
			b.within(3*gitPoll, "a 3_qa>2_current")
			b.move("2_current/a.md", "3_qa/a.md")
			b.events <- fsnotify.Event{}
			b.within(debounce, "a 2_current>3_qa")
			b.remove(marker)
		})
	}
}

// TestACheckoutIsNoMove: what a checkout, a switch or a reset changes on the board is no event. A commit, a merge, and what
// people do is.
func TestACheckoutIsNoMove(t *testing.T) {
	l := newLive(t, map[string]string{"1_backlog/a.md": "a", "1_backlog/b.md": "b", "2_current/.keep": "", "5_done/.keep": ""})
	l.git(l.dir, "init", "-q", "-b", "main")
	l.git(l.dir, "add", ".")
	l.git(l.dir, "commit", "-qm", "board")
	l.git(l.dir, "switch", "-qc", "side")
	l.git(l.dir, "mv", "1_backlog/a.md", "5_done/")
	l.git(l.dir, "commit", "-qm", "done")
	l.git(l.dir, "switch", "-qc", "more")
	l.write("2_current/new.md", "---\nblocked: true\n---")
	l.git(l.dir, "add", ".")
	l.git(l.dir, "commit", "-qm", "new")
	l.git(l.dir, "switch", "-q", "main")
	board, err := Open(Options{Dir: l.dir, Log: l.log, Record: l.record})
	if err != nil {
		t.Fatal(err)
	}
	l.Board = board
	l.run()
	shows := func(stage string) {
		t.Helper()
		waittest.Until(t, "a in "+stage, func() bool {
			_, at, _ := l.View().Find("a")
			return at == stage
		})
	}
	l.git(l.dir, "switch", "-q", "side")
	shows("5_done")
	l.git(l.dir, "checkout", "-q", "main")
	shows("1_backlog")
	l.git(l.dir, "checkout", "-q", "--detach", "more")
	shows("5_done")
	l.git(l.dir, "switch", "-q", "main")
	shows("1_backlog")
	l.git(l.dir, "reset", "-q", "--hard", "side")
	shows("5_done")
	l.git(l.dir, "reset", "-q", "--hard", "HEAD~1")
	shows("1_backlog")
	l.git(l.dir, "mv", "1_backlog/b.md", "2_current/")
	l.next("b 1_backlog>2_current")
	l.git(l.dir, "commit", "-qm", "b")
	l.git(l.dir, "merge", "-q", "--no-edit", "side")
	l.next("a 1_backlog>5_done")
}

// TestWhatGitBringsBackReopensNothing: a move is not committed, and a merge has the file in its old stage again.
func TestWhatGitBringsBackReopensNothing(t *testing.T) {
	l := newLive(t, map[string]string{"1_backlog/a.md": "a", "1_backlog/b.md": "b", "2_current/c.md": "c", "5_done/.keep": ""})
	l.git(l.dir, "init", "-q", "-b", "main")
	l.git(l.dir, "add", ".")
	l.git(l.dir, "commit", "-qm", "board")
	l.git(l.dir, "worktree", "add", "-q", l.dir+"-side", "-b", "side")
	if err := os.WriteFile(l.dir+"-side/1_backlog/a.md", []byte("a, longer"), 0o666); err != nil {
		t.Fatal(err)
	}
	l.git(l.dir+"-side", "commit", "-qam", "text")
	l.run()
	l.move("1_backlog/a.md", "5_done/a.md")
	l.next("a 1_backlog>5_done")
	l.git(l.dir, "merge", "-q", "side") // a fast-forward
	l.move("2_current/c.md", "5_done/c.md")
	l.next("c 2_current>5_done")
	l.git(l.dir, "checkout", "-q", "--", ".")
	l.move("1_backlog/b.md", "2_current/b.md")
	l.next("b 1_backlog>2_current")
	l.git(l.dir, "add", ".") // HEAD has both: the later stage counts
	l.git(l.dir, "commit", "-qm", "both")
	l.write("1_backlog/a.md", "a, changed last")
	l.write("1_backlog/d.md", "d")
	l.next("d >1_backlog")
	for id, want := range map[string]string{"a": "5_done", "c": "5_done"} {
		if _, stage, _ := l.View().Find(id); stage != want {
			t.Errorf("%s is in %s", id, stage)
		}
	}
}
