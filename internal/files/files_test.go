//go:build unix

package files_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"switchyard/internal/files"
	"switchyard/internal/waittest"
)

// Some tests need a separate process, to be killed or for its umask: the test binary runs itself.
func TestMain(m *testing.M) {
	path := os.Getenv("FILES_TEST_PATH")
	switch os.Getenv("FILES_TEST_HELPER") {
	case "":
		os.Exit(m.Run())
	case "write forever":
		for i := byte(0); ; i++ {
			if err := files.WriteAtomic(path, bytes.Repeat([]byte{'a' + i%26}, 64<<10)); err != nil {
				panic(err)
			}
		}
	case "write under umask 0777":
		syscall.Umask(0o777)
		exit(files.WriteAtomic(path, []byte("new")))
	case "write under umask 0":
		syscall.Umask(0)
		exit(files.WriteAtomic(path, []byte("new")))
	case "write to a full disk":
		signal.Ignore(syscall.SIGXFSZ)
		exit(errors.Join(unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 10, Max: 10}), files.WriteAtomic(path, make([]byte, 100))))
	case "write":
		exit(files.WriteAtomic(path, []byte("new")))
	case "hold the lock":
		unlock, err := files.Lock(path)
		if err != nil {
			exit(err)
		}
		defer unlock() // never reached; a lock that nothing refers to may be collected
		os.Stdout.WriteString("held\n")
		select {}
	case "count":
		for range 50 {
			unlock, err := files.Lock(path)
			if err != nil {
				exit(err)
			}
			old, _ := os.ReadFile(path)
			if err := files.WriteAtomic(path, append(old, '.')); err != nil {
				exit(err)
			}
			unlock()
		}
	}
}

func exit(err error) {
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}

func helper(t *testing.T, what, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "FILES_TEST_HELPER="+what, "FILES_TEST_PATH="+path)
	return cmd
}

func put(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(content), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, path, content string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || string(data) != content {
		t.Errorf("content of %s = %q, %v; want %q", filepath.Base(path), data, err, content)
	}
}

func wantMode(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != mode {
		t.Errorf("mode of %s = %o, want %o", filepath.Base(path), info.Mode().Perm(), mode)
	}
}

func wantNames(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("directory holds %q, want %q", got, names)
	}
}

func TestFileAndDirectoriesAreTheOwnersUnderAnyUmask(t *testing.T) {
	for _, umask := range []string{"write under umask 0", "write under umask 0777"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "a", "b", "file")
		if out, err := helper(t, umask, path).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", umask, err, out)
		}
		wantMode(t, filepath.Join(dir, "a"), 0o700)
		wantMode(t, filepath.Join(dir, "a", "b"), 0o700)
		wantMode(t, path, 0o600)
		wantFile(t, path, "new")
	}
}

func TestAnOpenModeIsRepaired(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	put(t, path, "old", 0o644)
	if err := files.WriteAtomic(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	wantMode(t, path, 0o600)

	put(t, path, "old", 0o644)
	if err := files.Restrict(path); err != nil {
		t.Fatal(err)
	}
	wantMode(t, path, 0o600)
	if err := files.Restrict(path + "-missing"); err != nil {
		t.Errorf("Restrict of a missing file: %v", err)
	}
}

func TestALinkIsKeptAndItsTargetReplaced(t *testing.T) {
	for name, target := range map[string]string{"existing": "real/file", "dangling": "new/file", "by way of a directory link": "alias/../real/file"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			os.Mkdir(filepath.Join(dir, "real"), 0o755)
			os.MkdirAll(filepath.Join(dir, "elsewhere", "deep"), 0o755)
			put(t, filepath.Join(dir, "real", "file"), "old", 0o600)
			link, want := filepath.Join(dir, "link"), filepath.Join(dir, target)
			if strings.HasPrefix(target, "alias") {
				os.Symlink("elsewhere/deep", filepath.Join(dir, "alias"))
				os.Mkdir(filepath.Join(dir, "elsewhere", "real"), 0o755)
				want = filepath.Join(dir, "elsewhere", "real", "file")
			}
			if err := os.Symlink(target, link); err != nil {
				t.Fatal(err)
			}
			if err := files.WriteAtomic(link, []byte("new")); err != nil {
				t.Fatal(err)
			}
			if to, err := os.Readlink(link); err != nil || to != target {
				t.Errorf("the link is %q, %v; want it kept", to, err)
			}
			wantFile(t, want, "new")
		})
	}
}

func TestALinkInACircleIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "link")
	os.Symlink("link", path)
	if err := files.WriteAtomic(path, nil); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("WriteAtomic = %v, want ELOOP", err)
	}
}

func TestWhatIsNoFileIsNotReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := files.WriteAtomic(path, []byte("new")); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("WriteAtomic onto a pipe = %v", err)
	}
}

func TestAFullDiskLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	put(t, path, "old", 0o600)
	out, err := helper(t, "write to a full disk", path).CombinedOutput()
	if err == nil || strings.Contains(string(out), ".tmp") || !strings.Contains(string(out), path+": file too large") {
		t.Errorf("the writer said %q, %v", out, err)
	}
	wantFile(t, path, "old")
	wantNames(t, dir, "file")
}

func TestAReadOnlyDirectoryLeavesTheOldFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "closed")
	os.Mkdir(dir, 0o755)
	path := filepath.Join(dir, "file")
	put(t, path, "old", 0o644)
	os.Chmod(dir, 0o555)
	t.Cleanup(func() { os.Chmod(dir, 0o755) }) // so that it can be removed
	cmd := helper(t, "write", path)
	if os.Geteuid() == 0 { // root writes anywhere
		program := filepath.Join(filepath.Dir(dir), "test")
		os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755)
		data, _ := os.ReadFile(os.Args[0])
		put(t, program, string(data), 0o755)
		cmd.Path, cmd.SysProcAttr = program, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), path+": permission denied") {
		t.Errorf("the writer said %q, %v", out, err)
	}
	wantFile(t, path, "old")
	wantNames(t, dir, "file")
}

func TestAKilledWriterLeavesOldOrNewContentAndItsOrphansGo(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	put(t, path, strings.Repeat("a", 64<<10), 0o600)
	for range 20 {
		cmd := helper(t, "write forever", path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Stat(path)
		waittest.Until(t, "the file is replaced", func() bool {
			now, err := os.Stat(path)
			return err == nil && !os.SameFile(before, now)
		})
		cmd.Process.Kill()
		cmd.Wait()
		data, err := os.ReadFile(path)
		if err != nil || len(data) != 64<<10 || bytes.Count(data, data[:1]) != len(data) {
			t.Fatalf("torn: %d bytes, %v", len(data), err)
		}
	}
	put(t, filepath.Join(dir, ".file.tmp"), "orphan", 0o600)
	put(t, filepath.Join(dir, ".other.tmp"), "not ours", 0o600)
	if err := files.Tidy(path, false); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, ".other.tmp", "file", "file.lock")
}

func TestSweepingWithoutADirectoryMakesNone(t *testing.T) {
	dir := t.TempDir()
	if err := files.Tidy(filepath.Join(dir, "missing", "file"), false); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir)
}

func TestALockIsHeldOnceAndFreedByUnlock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	unlock, err := files.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.TryLock(path); !errors.Is(err, files.ErrLocked) {
		t.Errorf("second TryLock = %v, want ErrLocked", err)
	}
	unlock()
	if unlock, err = files.TryLock(path); err != nil {
		t.Fatal(err)
	}
	unlock()
	wantMode(t, path+".lock", 0o600)
}

func TestAKilledHolderFreesTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	cmd := helper(t, "hold the lock", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if _, err := files.TryLock(path); !errors.Is(err, files.ErrLocked) {
		t.Errorf("TryLock = %v, want ErrLocked", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	waittest.Until(t, "the lock is free", func() bool {
		unlock, err := files.TryLock(path)
		if err == nil {
			unlock()
		}
		return err == nil
	})
}

func TestLockedWritersLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if out, err := helper(t, "count", path).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	group.Wait()
	wantFile(t, path, strings.Repeat(".", 100))
}

// TestALockFileIsNoLink: in a directory that others may write to, a link would let them choose whose mode is changed.
func TestALockFileIsNoLink(t *testing.T) {
	for name, make := range map[string]func(lock, victim string) error{
		"a link to a file": func(lock, victim string) error { return os.Symlink(victim, lock) },
		"a dangling link":  func(lock, victim string) error { return os.Symlink(victim+".new", lock) },
		"a pipe":           func(lock, _ string) error { return unix.Mkfifo(lock, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, victim := filepath.Join(dir, "file"), filepath.Join(dir, "victim")
			if err := errors.Join(os.WriteFile(victim, nil, 0o644), os.Chmod(victim, 0o644), make(path+".lock", victim)); err != nil {
				t.Fatal(err)
			}
			unlock, err := files.TryLock(path)
			if err == nil {
				unlock()
			}
			if err == nil || !strings.Contains(err.Error(), path+".lock") || errors.Is(err, files.ErrLocked) {
				t.Errorf("TryLock = %v", err)
			}
			if info, err := os.Stat(victim); err != nil || info.Mode().Perm() != 0o644 {
				t.Errorf("the file behind it: %v, %v", info, err)
			}
			if _, err := os.Stat(victim + ".new"); err == nil {
				t.Error("a file was made at the end of the link")
			}
		})
	}
}

func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	pipe, file, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(unix.Mkfifo(pipe, 0o600), os.WriteFile(file, []byte("text"), 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link} {
		if data, err := files.Read(path, files.Small); string(data) != "text" || err != nil {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
	for path, want := range map[string]string{pipe: "is not a regular file", "/dev/zero": "is not a regular file", dir: "is a directory"} {
		if _, err := files.Read(path, files.Small); err == nil || !strings.Contains(err.Error(), path+": "+want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if _, err := files.Read(file, 3); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("a file of four bytes, of which three are allowed: %v", err)
	}
	if data, err := files.ReadEnd(file, 3); string(data) != "ext" || err != nil {
		t.Errorf("its end: %q, %v", data, err)
	}
	if _, err := files.Read(file+"2", files.Small); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
