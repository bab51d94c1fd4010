//go:build unix

package projectserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"switchyard/internal/board"
	"switchyard/internal/waittest"
	"switchyard/internal/wire"
)

// none is the head of a place that a trap takes away.
const none = "none"

// traps are repositories of strangers, with a work tree in which 1_story has moved. Each returns the head that its first place has all
// the same, and what else must hold.
var traps = map[string]func(s, honest shop) (head string, holds func() error){
	"links and pipes among the work trees": func(s, honest shop) (string, func() error) {
		trees := filepath.Join(s.dir, ".git", "worktrees")
		s.must(os.Symlink("/dev/zero", filepath.Join(trees, "device")), os.Symlink(".", filepath.Join(trees, "loop")),
			os.Symlink(filepath.Join(honest.dir, ".git", "worktrees", "2_story"), filepath.Join(trees, "link")))
		for name, gitdir := range map[string]string{"theirs": filepath.Join(honest.beside, "story/2_story/.git"), "root": "/root/.git", "dots": "../../../../../..", "zero": "/dev/zero"} {
			s.must(os.Mkdir(filepath.Join(trees, name), 0o777), os.WriteFile(filepath.Join(trees, name, "gitdir"), []byte(gitdir+"\n"), 0o666),
				os.WriteFile(filepath.Join(trees, name, "HEAD"), []byte("ref: refs/heads/main\n"), 0o666))
		}
		s.must(os.Mkdir(filepath.Join(trees, "pipe"), 0o777), unix.Mkfifo(filepath.Join(trees, "pipe", "gitdir"), 0o666))
		s.must(os.Mkdir(filepath.Join(trees, "endless"), 0o777), os.Symlink("/dev/zero", filepath.Join(trees, "endless", "gitdir")))
		return s.in("story/1_story", "rev-parse", "HEAD"), func() error {
			var told struct{ Worktrees []string }
			_, answer, _ := s.ask("GET", "/api/pipeline", "")
			s.must(json.Unmarshal([]byte(answer), &told))
			if len(told.Worktrees) != 2 {
				return fmt.Errorf("work trees %q", told.Worktrees)
			}
			return nil
		}
	},
	"10,000 work trees and branches": func(s, _ shop) (string, func() error) {
		head := s.in("story/1_story", "rev-parse", "HEAD")
		var packed strings.Builder
		packed.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
		for i := range 10_000 {
			fmt.Fprintf(&packed, "%s refs/heads/aa/%05d-1_story\n", head, i)
			dir := filepath.Join(s.dir, ".git", "worktrees", fmt.Sprint("gone-", i))
			s.must(os.Mkdir(dir, 0o777), os.WriteFile(filepath.Join(dir, "gitdir"), fmt.Appendf(nil, "/nowhere/%d/.git\n", i), 0o666))
		}
		s.must(os.WriteFile(filepath.Join(s.dir, ".git", "packed-refs"), []byte(packed.String()), 0o666))
		return head, func() error {
			if list := s.work("1_story"); len(list) != wire.MaxWork {
				return fmt.Errorf("%d places", len(list))
			}
			return nil
		}
	},
	"a device for packed-refs": func(s, _ shop) (string, func() error) {
		s.must(os.Symlink("/dev/zero", filepath.Join(s.dir, ".git", "packed-refs")))
		return none, nil
	},
	"huge packed-refs": func(s, _ shop) (string, func() error) {
		path := filepath.Join(s.dir, ".git", "packed-refs")
		s.must(os.WriteFile(path, nil, 0o666), os.Truncate(path, 8<<30))
		return none, nil
	},
	"a pipe for alternates": func(s, _ shop) (string, func() error) {
		s.must(os.MkdirAll(filepath.Join(s.dir, ".git/objects/info"), 0o777), unix.Mkfifo(filepath.Join(s.dir, ".git/objects/info/alternates"), 0o666))
		return none, nil
	},
	"a pipe for a branch": func(s, _ shop) (string, func() error) {
		s.must(unix.Mkfifo(filepath.Join(s.dir, ".git/refs/heads/pipe"), 0o666))
		return none, nil
	},
	"names of branches": func(s, _ shop) (string, func() error) {
		head := s.in("story/1_story", "rev-parse", "HEAD")
		odd := []string{"--upload-pack=touch${IFS}x;1_story", "\u202etxt.exe/1_story", "<b>1_story</b>"}
		for _, name := range odd {
			s.git("update-ref", "refs/heads/"+name, head)
		}
		s.must(os.WriteFile(filepath.Join(s.dir, ".git/packed-refs"), []byte(head+" refs/heads/\x1b[0m-1_story\n"), 0o666))
		s.must(os.WriteFile(filepath.Join(s.dir, ".git/refs/heads/\x1b[0m-1_story"), []byte(head+"\n"), 0o666))
		return head, func() error {
			for _, name := range odd {
				if c, status := s.changes("1_story", "branch", name); status != 200 || c.Head != head {
					return fmt.Errorf("%q: %d %+v", name, status, c)
				}
			}
			for _, place := range s.work("1_story") {
				if strings.ContainsFunc(wire.Text(place.Branch), unicode.IsControl) {
					return fmt.Errorf("%q is shown", *place.Branch)
				}
			}
			return nil
		}
	},
	"replaced and grafted commits": func(s, _ shop) (string, func() error) {
		head, base := s.in("story/1_story", "rev-parse", "HEAD"), s.git("rev-parse", "HEAD")
		s.git("replace", head, base)
		s.must(os.MkdirAll(filepath.Join(s.dir, ".git/info"), 0o777), os.WriteFile(filepath.Join(s.dir, ".git/info/grafts"), []byte(head+"\n"+base+" "+head+"\n"), 0o666))
		return head, func() error {
			if list := s.work("1_story"); list[0].Ahead != 1 || list[0].Behind != 0 || list[0].Merged {
				return fmt.Errorf("%+v", list[0])
			}
			return nil
		}
	},
	"a submodule that leads elsewhere": func(s, honest shop) (string, func() error) {
		s.in("story/1_story", "update-index", "--add", "--cacheinfo", "160000,"+honest.git("rev-parse", "HEAD")+",sub")
		s.put("story/1_story", ".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ext::touch x\n\tupdate = !touch x\n")
		s.must(os.Mkdir(filepath.Join(s.beside, "story/1_story/sub"), 0o777))
		s.put("story/1_story", "sub/.git", "gitdir: "+filepath.Join(honest.dir, ".git"))
		s.in("story/1_story", "add", ".gitmodules")
		s.in("story/1_story", "commit", "-qm", "a submodule")
		return s.in("story/1_story", "rev-parse", "HEAD"), func() error {
			if c, status := s.changes("1_story"); status != 200 || !strings.Contains(c.Diff, "+Subproject commit ") || len(c.Uncommitted.Files) > 0 {
				return fmt.Errorf("%d %+v", status, c)
			}
			return nil
		}
	},
	"a commit of one endless line": func(s, _ shop) (string, func() error) {
		commit := exec.Command("git", "-C", s.dir, "-c", "user.name=Ada", "-c", "user.email=a@example.org", "commit-tree", "-p", "story/1_story", "story/1_story^{tree}")
		commit.Stdin = bytes.NewReader(bytes.Repeat([]byte("1_story "), 4<<20))
		hash, err := commit.Output()
		s.must(err)
		s.in("story/1_story", "reset", "-q", "--hard", strings.TrimSpace(string(hash)))
		return s.in("story/1_story", "rev-parse", "HEAD"), func() error {
			if c, status := s.changes("1_story"); status != 200 || len(c.Commits) != 2 || len(c.Commits[0].Subject) > 2000 {
				return fmt.Errorf("%d, %d commits", status, len(c.Commits))
			}
			return nil
		}
	},
	"a diff of 100,000 files": func(s, _ shop) (string, func() error) {
		stream := bytes.NewBufferString("commit refs/heads/story/1_story\ncommitter Ada <a@example.org> 1790000000 +0000\ndata 1\nx\nfrom refs/heads/story/1_story^0\n")
		for i := range 100_000 {
			fmt.Fprintf(stream, "M 644 inline many/%d/%d\ndata 2\nx\n\n", i%300, i)
		}
		cmd := exec.Command("git", "-C", s.dir, "fast-import", "--quiet", "--force")
		cmd.Stdin = stream
		s.must(cmd.Run())
		s.in("story/1_story", "symbolic-ref", "HEAD", "refs/heads/story/1_story") // its files are not there
		return s.in("story/1_story", "rev-parse", "HEAD"), func() error {
			if c, status := s.changes("1_story"); status != 503 && (status != 200 || len(c.Files)+c.More != 100_001 || !c.Cut) {
				return fmt.Errorf("%d, %d files, %d more", status, len(c.Files), c.More)
			}
			return nil
		}
	},
}

func (s shop) must(errs ...error) {
	s.t.Helper()
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
}

// TestAHostileRepositoryHurtsNothingElse: it is refused, or shown within bounds; its board stays, and an honest one beside it shows at
// once what happens there.
func TestAHostileRepositoryHurtsNothingElse(t *testing.T) {
	if testing.Short() {
		t.Skip("takes over a second of processor time")
	}
	honest := newRepository(t)
	honest.in("story/2_story", "mv", "1_backlog/2_story.md", "2_current/")
	honest.openBoard(board.Options{Dir: honest.dir})
	for name, set := range traps {
		t.Run(name, func(t *testing.T) {
			s := newRepository(t)
			s.in("story/1_story", "mv", "1_backlog/1_story.md", "2_current/")
			s.in("story/1_story", "commit", "-qm", "moved")
			head, holds := set(s, honest)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			s.openBoard(board.Options{Dir: s.dir})
			if _, stage := s.item("1_story"); stage != "1_backlog" && stage != "2_current" {
				t.Errorf("1_story is in %q", stage)
			}
			honest.in("story/2_story", "commit", "-q", "--allow-empty", "-m", name)
			news := honest.in("story/2_story", "rev-parse", "HEAD")
			waittest.Until(t, "the news of the honest board", func() bool { list := honest.work("2_story"); return len(list) > 0 && list[0].Head == news })
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("the honest board took %v", took)
			}
			if head != none {
				waittest.Until(t, "the work", func() bool { list := s.work("1_story"); return len(list) > 0 && list[0].Head == head })
			} else if list := s.work("1_story"); len(list) > 0 {
				t.Errorf("%+v", list)
			}
			if holds != nil {
				s.must(holds())
			}
			runtime.ReadMemStats(&after)
			if used := int64(after.TotalAlloc-before.TotalAlloc) >> 20; used > 200 {
				t.Errorf("%d MiB were allocated", used)
			}
			if _, err := os.Stat(filepath.Join(s.dir, "x")); err == nil {
				t.Error("a program was run")
			}
		})
	}
}
