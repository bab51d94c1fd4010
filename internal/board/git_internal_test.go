//go:build unix

package board

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"
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
