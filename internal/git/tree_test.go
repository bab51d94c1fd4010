//go:build unix

package git_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/internal/git"
	"switchyard/internal/gittest"
)

// Whatever .git is, looking for a work tree ends, and takes no memory.
func TestAStrangeGitIsNoWorkTree(t *testing.T) {
	huge := func(path string) error {
		return errors.Join(os.WriteFile(path, []byte("gitdir: elsewhere"), 0o666), os.Truncate(path, 4<<30))
	}
	for name, make := range map[string]func(path string) error{
		"a link to a device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"a pipe":             func(path string) error { return unix.Mkfifo(path, 0o666) },
		"a sparse file":      huge,
		"a link to itself":   func(path string) error { return os.Symlink(path, path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := make(filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
			if tree, found := git.Find(dir); found {
				t.Errorf("%+v", tree)
			}
		})
	}
	for _, part := range []string{"HEAD", "logs/HEAD", "shallow", "commondir", "packed-refs", "objects/info/alternates", "info/grafts"} {
		dir := t.TempDir()
		gittest.Git(t, dir, "init", "-q")
		path := filepath.Join(dir, ".git", part)
		_ = os.Remove(path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.Symlink("/dev/zero", path)); err != nil {
			t.Fatal(err)
		}
		tree, found := git.Find(dir)
		var log git.Reflog
		if found != (part == "logs/HEAD" || part == "commondir") || log.Checkout(tree) || log.Checkout(tree) {
			t.Errorf("%s: %v %+v", part, found, tree)
		}
	}
}

func TestARepositoryOfSomebodyElseAboveIsPassedOver(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	outer := t.TempDir()
	gittest.Git(t, outer, "init", "-q")
	between := filepath.Join(outer, "between")
	dir := filepath.Join(between, "board")
	if err := errors.Join(os.MkdirAll(filepath.Join(between, ".git"), 0o777), os.Mkdir(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{between, filepath.Join(between, ".git")} {
		if err := os.Chown(path, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if tree, _ := git.Find(dir); tree.Dir != outer {
			t.Errorf("%s is somebody else's: found %+v", path, tree)
		}
	}
	if err := os.Chown(dir, 12345, 12345); err != nil { // who serves it has been told to
		t.Fatal(err)
	}
	if tree, _ := git.Find(dir); tree.Dir != between {
		t.Errorf("all of one owner: found %+v", tree)
	}
}

// A git that takes too long has not said everything.
func TestWhatIsCutOffIsAnError(t *testing.T) {
	slow := filepath.Join(t.TempDir(), "git")
	if err := os.WriteFile(slow, []byte("#!/bin/sh\necho a; exec sleep 100\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(slow)+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(t.Context())
	var records []string
	err := git.Open(t.TempDir()).Records(ctx, nil, '\n', func(record []byte) error {
		records = append(records, string(record))
		cancel() // as a time limit would
		return nil
	}, "log")
	if !errors.Is(err, git.ErrCutOff) || strings.Join(records, "") != "a" {
		t.Errorf("%q, %v", records, err)
	}
	err = git.Open(t.TempDir()).Records(t.Context(), nil, '\n', func([]byte) error { return git.ErrEnough }, "log")
	if err != nil {
		t.Error(err)
	}
}

func TestAHugeReferenceEndsGit(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory of git is limited on Linux only")
	}
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "-q")
	gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "x")
	if err := os.Truncate(filepath.Join(dir, ".git", "refs", "heads", "main"), 8<<30); err != nil {
		t.Fatal(err)
	}
	if head, err := git.Open(dir).Within(64 << 20).Head(t.Context()); err == nil {
		t.Errorf("HEAD is %q", head)
	}
}

func TestACommandIsCutOffByItsCPUTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the CPU time of git is limited on Linux only")
	}
	dir := t.TempDir()
	endless := "#!/bin/sh\necho a\nwhile :; do :; done\n"
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(endless), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	if text, err := git.Open(dir).WithCPU(time.Second).Output(t.Context(), "log"); !errors.Is(err, git.ErrCutOff) {
		t.Errorf("%q, %v", text, err)
	}
}
