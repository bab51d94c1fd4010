package gitlog_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/gitlog"
	"switchyard/internal/waittest"
)

// newBoard returns a project whose directory work is a board.
func newBoard(t *testing.T) *project {
	t.Helper()
	p := newProject(t)
	p.onBoard("work")
	return p
}

// onBoard makes the log that of the board in a directory.
func (p *project) onBoard(dir string) {
	p.t.Helper()
	p.onLayout(dir, "")
}

func (p *project) onLayout(dir, layout string) {
	p.t.Helper()
	dir = filepath.Join(p.dir, dir)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		p.t.Fatal(err)
	}
	b, err := board.Open(board.Options{Dir: dir, Layout: layout, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		p.t.Fatal(err)
	}
	p.past = b.Past()
	p.log = gitlog.New(gitlog.Options{Dir: dir, Board: p, Log: slog.New(slog.NewTextHandler(&p.logs, nil))})
	p.log.SetRecheck(100 * time.Millisecond)
}

// did commits everything so many days before now.
func (p *project) did(daysAgo float64, args ...string) {
	p.t.Helper()
	date := fmt.Sprintf("%d +0000", time.Now().Add(-time.Duration(daysAgo*24*float64(time.Hour))).Unix())
	p.t.Setenv("GIT_COMMITTER_DATE", date)
	p.t.Setenv("GIT_AUTHOR_DATE", date)
	p.git("add", "-A")
	p.git(append([]string{"commit", "-q", "-m", "x"}, args...)...)
}

func (p *project) mv(from, to string) {
	p.t.Helper()
	p.write(to, "")
	p.rename(filepath.Join(p.dir, from), filepath.Join(p.dir, to))
}

// moved returns the moves as "story from→to days ago".
func (p *project) moved() string {
	known := p.log.Moves()
	if !known.Complete {
		return "incomplete"
	}
	var list []string
	for _, m := range known.List {
		from := ""
		if m.FromStage != nil {
			from = *m.FromStage
		}
		days := time.Since(time.UnixMilli(m.AtMS)).Hours() / 24
		list = append(list, fmt.Sprintf("%s %s→%s %.0f", m.StoryID, from, m.ToStage, days))
		if m.Author != "Ada" || len(m.Commit) != 40 {
			p.t.Errorf("by %q in %q", m.Author, m.Commit)
		}
	}
	return strings.Join(list, ", ")
}

func (p *project) wantMoves(want string) {
	p.t.Helper()
	waittest.Until(p.t, "moves "+want, func() bool { return p.moved() == want })
}

func TestMovesAreWhatEachCommitDid(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(p *project)
		want string
	}{
		{"moves", func(p *project) {
			p.write("work/1_backlog/7.md", "x")
			p.did(30)
			p.write("work/1_backlog/7.md", "y")
			p.did(25)
			p.mv("work/1_backlog/7.md", "work/2_current/7.md")
			p.did(20)
			p.write("other", "z")
			p.did(10)
		}, "7 →1_backlog 30, 7 1_backlog→2_current 20"},
		{"no move", func(p *project) {
			p.write("work/1_backlog/.hidden.md", "x")
			p.write("work/1_backlog/7.txt", "x")
			p.write("work/notes/7.md", "x")
			p.write("work/1_backlog/deep/7.md", "x")
			p.write("1_backlog/7.md", "x")
			if err := os.Symlink("7.txt", filepath.Join(p.dir, "work/1_backlog/link.md")); err != nil {
				p.t.Fatal(err)
			}
			p.did(30)
		}, ""},
		{"a deletion, and a story that comes back", func(p *project) {
			p.write("work/1_backlog/7.md", "x")
			p.did(30)
			p.git("rm", "-q", "work/1_backlog/7.md")
			p.did(20)
			p.write("work/1_backlog/7.md", "x")
			p.did(15)
			p.git("rm", "-q", "work/1_backlog/7.md")
			p.did(10)
			p.write("work/3_qa/7.md", "x")
			p.did(5)
		}, "7 →1_backlog 30, 7 1_backlog→3_qa 5"},
		{"copy and delete", func(p *project) {
			p.write("work/1_backlog/7.md", "x")
			p.did(30)
			p.write("work/2_current/7.md", "x")
			p.did(20)
			p.git("rm", "-q", "work/1_backlog/7.md")
			p.did(10)
		}, "7 →1_backlog 30, 7 1_backlog→2_current 20"},
		{"a merge adds none", func(p *project) {
			p.write("work/1_backlog/7.md", "x")
			p.did(30)
			p.git("switch", "-qc", "side")
			p.mv("work/1_backlog/7.md", "work/2_current/7.md")
			p.did(20)
			p.git("switch", "-q", "main")
			p.write("other", "z")
			p.did(15)
			p.git("merge", "-q", "--no-ff", "side", "-m", "merge")
		}, "7 →1_backlog 30, 7 1_backlog→2_current 20"},
		{"what a merge undoes counts all the same", func(p *project) {
			p.write("work/1_backlog/7.md", "x")
			p.did(30)
			p.git("switch", "-qc", "side")
			p.mv("work/1_backlog/7.md", "work/2_current/7.md")
			p.did(20)
			p.git("switch", "-q", "main")
			p.write("other", "z")
			p.did(15)
			p.git("merge", "-q", "-s", "ours", "side", "-m", "merge")
		}, "7 →1_backlog 30, 7 1_backlog→2_current 20"},
		{"authors' dates that run back", func(p *project) {
			p.write("work/1_backlog/7.md", "x")
			p.did(20)
			p.mv("work/1_backlog/7.md", "work/2_current/7.md")
			p.did(20)
			p.t.Setenv("GIT_AUTHOR_DATE", fmt.Sprintf("%d +0000", time.Now().AddDate(0, 0, -30).Unix()))
			p.mv("work/2_current/7.md", "work/3_qa/7.md")
			p.git("add", "-A")
			p.git("commit", "-q", "-m", "x")
		}, "7 →1_backlog 20, 7 1_backlog→2_current 20, 7 2_current→3_qa 20"},
		{"names of every kind", func(p *project) {
			p.write("work/1_backlog/7 \"ä\n\t\\.md", "x")
			p.did(20)
		}, "7 \"ä\n\t\\ →1_backlog 20"},
		{"the last 180 days", func(p *project) {
			p.write("work/1_backlog/7.md", "x")
			p.did(181)
			p.mv("work/1_backlog/7.md", "work/2_current/7.md")
			p.did(179)
		}, "7 1_backlog→2_current 179"},
		{"a commit with a date of long ago", func(p *project) {
			p.write("work/1_backlog/7.md", "x")
			p.did(30)
			p.mv("work/1_backlog/7.md", "work/2_current/7.md")
			p.did(20)
			p.write("other", "z")
			p.did(9000)
			p.mv("work/2_current/7.md", "work/3_qa/7.md")
			p.did(10)
		}, "7 →1_backlog 30, 7 1_backlog→2_current 20, 7 2_current→3_qa 10"},
		{"old work that was committed later", func(p *project) {
			p.write("work/1_backlog/7.md", "x")
			p.did(20)
			p.mv("work/1_backlog/7.md", "work/2_current/7.md")
			p.git("add", "-A")
			p.git("commit", "-q", "-m", "x", "--date", time.Now().AddDate(0, 0, -15).Format(time.RFC3339))
			p.write("work/1_backlog/8.md", "x")
			p.git("add", "-A")
			p.git("commit", "-q", "-m", "x", "--date", time.Now().AddDate(0, 0, -200).Format(time.RFC3339))
			p.mv("work/1_backlog/8.md", "work/2_current/8.md")
			p.did(5)
		}, "7 →1_backlog 20, 7 1_backlog→2_current 15, 8 1_backlog→2_current 5"},
		{"a rebase", func(p *project) {
			p.write("work/1_backlog/7.md", "x")
			p.did(30)
			p.git("switch", "-qc", "side")
			p.mv("work/1_backlog/7.md", "work/2_current/7.md")
			p.did(20)
			p.git("switch", "-q", "main")
			p.write("other", "z")
			p.did(15)
			p.git("rebase", "-q", "main", "side")
		}, "7 →1_backlog 30, 7 1_backlog→2_current 20"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newBoard(t)
			test.do(p)
			if p.moved() != "incomplete" {
				t.Error("git has not been read, but the moves are complete")
			}
			p.run()
			p.wantMoves(test.want)
			if p.logs.String() != "" {
				t.Error(p.logs.String())
			}
		})
	}
}

func TestMovesAreReadAgainWhenHEADMoves(t *testing.T) {
	p := newBoard(t)
	p.write("work/1_backlog/7.md", "x")
	p.did(30)
	p.run()
	p.wantMoves("7 →1_backlog 30")
	first := p.log.Moves()
	p.write("other", "z")
	p.did(20)
	waittest.Until(t, "HEAD is read", func() bool { return p.log.Moves() != first })
	if again := p.log.Moves(); again.ID != first.ID {
		t.Errorf("a commit elsewhere makes another history: %s after %s", again.ID, first.ID)
	}
	p.mv("work/1_backlog/7.md", "work/2_current/7.md")
	p.did(10)
	p.wantMoves("7 →1_backlog 30, 7 1_backlog→2_current 10")
	if now := p.log.Moves(); now.ID == first.ID {
		t.Error("another history has the same id")
	}
	p.git("reset", "-q", "--hard", "HEAD~1")
	p.wantMoves("7 →1_backlog 30")
	if now := p.log.Moves(); now.ID != first.ID {
		t.Error("the same history has another id")
	}
	p.rename(filepath.Join(p.dir, ".git"), filepath.Join(p.dir, "away"))
	p.wantMoves("")
}

func TestRepositoriesOfEveryKind(t *testing.T) {
	t.Run("none", func(t *testing.T) {
		p := newBoard(t)
		p.rename(filepath.Join(p.dir, ".git"), filepath.Join(p.dir, "away"))
		p.run()
		p.wantMoves("")
	})
	t.Run("without commits", func(t *testing.T) {
		p := newBoard(t)
		p.run()
		p.wantMoves("")
	})
	t.Run("bare", func(t *testing.T) {
		p := newBoard(t)
		p.write("work/1_backlog/7.md", "x")
		p.did(30)
		p.git("clone", "-q", "--bare", ".", "bare")
		p.onBoard("bare/work")
		p.run()
		p.wantMoves("")
	})
	t.Run("shallow", func(t *testing.T) {
		p := newBoard(t)
		p.write("work/1_backlog/7.md", "x")
		p.did(30)
		p.write("work/1_backlog/8.md", "x")
		p.did(20)
		p.mv("work/1_backlog/7.md", "work/2_current/7.md")
		p.did(10)
		p.git("clone", "-q", "--depth", "2", "file://"+p.dir, "shallow")
		p.onBoard("shallow/work")
		p.run()
		p.wantMoves("7 1_backlog→2_current 10")
	})
	t.Run("with objects missing", func(t *testing.T) {
		p := newBoard(t)
		p.write("work/1_backlog/7.md", "x")
		p.did(30)
		tree := p.git("rev-parse", "HEAD^{tree}")
		p.mv("work/1_backlog/7.md", "work/2_current/7.md")
		p.did(20)
		p.mv("work/2_current/7.md", "work/3_qa/7.md")
		p.did(10)
		if err := os.Remove(filepath.Join(p.dir, ".git/objects", tree[:2], tree[2:])); err != nil {
			t.Fatal(err)
		}
		p.run()
		p.wantMoves("7 2_current→3_qa 10")
	})
	t.Run("the board is its root", func(t *testing.T) {
		p := newBoard(t)
		p.git("init", "-q", "-b", "main", "board")
		p.onBoard("board")
		p.dir = filepath.Join(p.dir, "board")
		p.write("1_backlog/7.md", "x")
		p.did(30)
		p.run()
		p.wantMoves("7 →1_backlog 30")
	})
	t.Run("another work tree", func(t *testing.T) {
		p := newBoard(t)
		p.write("work/1_backlog/7.md", "x")
		p.did(30)
		p.git("worktree", "add", "-q", "tree")
		p.onBoard("tree/work")
		p.run()
		p.wantMoves("7 →1_backlog 30")
	})
}

// TestAHugeRepository has 20,000 commits, of which the newest 5,000 that touch the board count.
func TestAHugeRepository(t *testing.T) {
	if testing.Short() {
		t.Skip("takes over a second of processor time")
	}
	const commits = 9000
	p := newBoard(t)
	var stream strings.Builder
	start := time.Now().Add(-time.Duration(commits) * time.Minute).Unix()
	moved := 0
	for i := range commits {
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter Ada <ada@example.org> %d +0000\ndata 1\nx\n", start+int64(i)*60)
		if i%3 == 2 {
			fmt.Fprintf(&stream, "M 644 inline file%d\ndata 1\nx\n", i%100)
			continue
		}
		stages := []string{"1_backlog", "2_current"}
		to, from := stages[moved/500%2], stages[(moved/500+1)%2]
		fmt.Fprintf(&stream, "M 644 inline work/%s/%d.md\ndata 1\nx\nD work/%s/%[2]d.md\n", to, moved%500, from)
		moved++
	}
	cmd := exec.Command("git", "-C", p.dir, "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(stream.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	began := time.Now()
	p.run()
	told := false
	for now := p.log.Moves(); !told && !now.Complete && time.Since(began) < time.Minute; now = p.log.Moves() {
		told = 0 < now.Read && now.Read < now.Of && now.Of == 5000
		runtime.Gosched() // it may say so for a moment only
	}
	waittest.Until(t, "its moves", func() bool { return p.log.Moves().Complete })
	if !told {
		t.Error("it did not say how far it was")
	}
	known := p.log.Moves()
	if n := len(known.List); n != 5000 || known.List[0].FromStage == nil {
		t.Errorf("%d moves from %+v", n, known.List[0])
	}
	if oldest := time.UnixMilli(known.List[0].AtMS); time.Since(oldest) > 7600*time.Minute {
		t.Errorf("the oldest is of %v", oldest)
	}
	t.Log(time.Since(began))
}
