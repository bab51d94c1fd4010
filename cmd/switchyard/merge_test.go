package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"switchyard/internal/gittest"
	"switchyard/internal/waittest"
)

// TestAMergeThatIsCutOffLeavesNothing of up: DIR is as it was, its check has ended, the next start removes the rest, and
// what is to be merged is shown through the gateway before and merged after.
func TestAMergeThatIsCutOffLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repository, tree, temporary := filepath.Join(dir, "alpha"), filepath.Join(dir, "login"), filepath.Join(dir, "tmp")
	stages(t, repository, "1_story_login")
	for _, name := range []string{filepath.Join(repository, "5_done"), temporary} {
		if err := os.Mkdir(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(repository, "5_done", ".keep"), "")
	gittest.Git(t, repository, "init", "-q")
	gittest.Git(t, repository, "add", ".")
	gittest.Git(t, repository, "commit", "-qm", "board")
	gittest.Git(t, repository, "worktree", "add", "-q", "-b", "story/1_story_login", tree)
	write(filepath.Join(tree, "login.go"), "package login\n")
	gittest.Git(t, tree, "add", ".")
	gittest.Git(t, tree, "commit", "-qm", "work")
	head := gittest.Git(t, tree, "rev-parse", "HEAD")
	begin := func() (p *process, merge func() (int, string)) {
		cmd := switchyard(t, dir, "up", "--listen=localhost:0", "--data=DIR/data", "--allow-merges",
			"--merge-check", "cat login.go && if [ -e DIR/go ]; then exit 0; fi; sh -c 'echo $$ > DIR/pid~; mv DIR/pid~ DIR/pid; exec sleep 300'; exit 1", "DIR/alpha")
		cmd.Env = append(cmd.Env, "TMPDIR="+temporary)
		p = start(t, cmd)
		_, urls := p.registry(t)
		server := &process{url: urls["alpha"]}
		return p, func() (int, string) {
			status, text, err := server.ask("POST", "/api/stories/1_story_login/merge", fmt.Sprintf(`{"branch":"story/1_story_login","head":%q}`, head))
			if err != nil {
				text = err.Error()
			}
			return status, text
		}
	}
	state := func() string {
		return gittest.Git(t, repository, "status", "--porcelain=v2", "--branch", "--untracked-files=all") + gittest.Git(t, repository, "worktree", "list")
	}
	left := func() string {
		entries, err := os.ReadDir(temporary)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(entries)
	}
	before := state()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p, merge := begin()
		p.eventually(t, "/api/gateway/projects/alpha/stories/1_story_login/changes", `"head":"`+head+`"`, `+package login`, `"files":[{"path":"login.go","from":null,"status":"added"`)
		p.eventually(t, "/api/gateway/projects/alpha/stories/1_story_login", `"merges":true`)
		done := make(chan string)
		go func() { _, text := merge(); done <- text }()
		var pid int
		waittest.Until(t, "the check", func() bool {
			text, err := os.ReadFile(filepath.Join(dir, "pid"))
			pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
			return err == nil
		})
		if status, text := merge(); status != 409 || !strings.Contains(text, "another merge of this project is under way") {
			t.Errorf("a second merge: %d %s", status, text)
		}
		_, took := p.stop(t, signal)
		said := <-done
		waittest.Until(t, "the end of the check", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
		if signal == syscall.SIGTERM && (took.Seconds() > 10 || !strings.Contains(said, "the merge was stopped") || state() != before || left() != "[]") {
			t.Errorf("ended after %v, answered %s, left %s, %s", took, said, left(), state())
		}
		if got := gittest.Git(t, repository, "status", "--porcelain"); got != "" {
			t.Errorf("after %v: %s", signal, got)
		}
		if err := os.Remove(filepath.Join(dir, "pid")); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "go"), "")
	if err := os.Mkdir(filepath.Join(temporary, "switchyard-git-left"), 0o700); err != nil { // by a process that no longer runs
		t.Fatal(err)
	}
	p, _ := begin()
	if got := state(); got != before || strings.Contains(left(), "switchyard-merge") || strings.Contains(left(), "switchyard-git-left") {
		t.Errorf("after a start: %s, left %s", got, left())
	}
	status, text := p.mergeLogin(t, head)
	if got := gittest.Git(t, repository, "ls-files"); status != 200 || got != "5_done/.keep\n5_done/1_story_login.md\nlogin.go" {
		t.Errorf("%d %s, DIR has %s", status, text, got)
	}
}

// mergeLogin merges the branch of 1_story_login, once the gateway has an answer: the story may come too late at first.
func (p *process) mergeLogin(t *testing.T, head string) (status int, text string) {
	t.Helper()
	body := fmt.Sprintf(`{"branch":"story/1_story_login","head":%q}`, head)
	waittest.Until(t, "an answer to the merge", func() bool {
		status, text, _ = p.ask("POST", "/api/gateway/projects/alpha/stories/1_story_login/merge", body)
		return status != 502
	})
	return status, text
}

// TestAMergeThatIsKilledPutsFilesBack that were out of git's way: the next start has DIR as it was, to the byte, and merges.
func TestAMergeThatIsKilledPutsFilesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repository, tree, temporary, bin := filepath.Join(dir, "alpha"), filepath.Join(dir, "login"), filepath.Join(dir, "tmp"), filepath.Join(dir, "bin")
	stages(t, repository, "1_story_login")
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{filepath.Join(repository, "5_done", ".keep"), filepath.Join(repository, "1_backlog", ".keep"), filepath.Join(temporary, ".keep")} {
		write(name, "")
	}
	gittest.Git(t, repository, "init", "-q")
	gittest.Git(t, repository, "add", ".")
	gittest.Git(t, repository, "commit", "-qm", "board")
	gittest.Git(t, repository, "worktree", "add", "-q", "-b", "story/1_story_login", tree)
	write(filepath.Join(tree, "login.go"), "package login\n")
	gittest.Git(t, tree, "add", ".")
	gittest.Git(t, tree, "commit", "-qm", "work")
	head := gittest.Git(t, tree, "rev-parse", "HEAD")
	const own = "1_backlog/1_story_login.md"
	gittest.Git(t, repository, "mv", "2_current/1_story_login.md", "1_backlog/") // back, and changed: nobody has committed that
	write(filepath.Join(repository, own), "---\nname: Log in\n---\n\nmine\n")
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	state := func() string {
		text, err := os.ReadFile(filepath.Join(repository, own))
		return gittest.Git(t, repository, "status", "--porcelain=v2", "--branch", "--untracked-files=all") +
			gittest.Git(t, repository, "ls-files", "-s") + string(text) + fmt.Sprint(err)
	}
	begin := func(hangs string) (p *process, merge func() (int, string)) {
		write(filepath.Join(bin, "git"), "#!/bin/sh\ncase \"$*\" in *'"+hangs+"'*) echo $$ > "+dir+"/pid~; mv "+dir+"/pid~ "+dir+"/pid; exec sleep 300;; esac\nexec "+git+" \"$@\"\n")
		cmd := switchyard(t, dir, "up", "--listen=localhost:0", "--data=DIR/data", "--allow-merges", "DIR/alpha")
		p = start(t, withEnv(cmd, "TMPDIR="+temporary, "PATH="+bin+":"+os.Getenv("PATH")))
		p.eventually(t, "/api/gateway/projects/alpha/stories/1_story_login", `"head":"`+head+`"`)
		return p, func() (int, string) {
			return p.mergeLogin(t, head)
		}
	}
	before := state()
	for _, hangs := range []string{"reset --quiet -- ", "--ff-only"} {
		p, merge := begin(hangs)
		go merge()
		waittest.Until(t, "git "+hangs, func() bool { _, err := os.Stat(filepath.Join(dir, "pid")); return err == nil })
		text, _ := os.ReadFile(filepath.Join(dir, "pid"))
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		p.stop(t, syscall.SIGKILL)
		_ = syscall.Kill(pid, syscall.SIGKILL)
		waittest.Until(t, "the end of git", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
		if state() == before {
			t.Fatalf("at %s nothing is out of the way", hangs)
		}
		if err := os.Remove(filepath.Join(dir, "pid")); err != nil {
			t.Fatal(err)
		}
		p, _ = begin("no such command")
		if after := state(); after != before {
			t.Errorf("killed at %s:\n%s\nwas\n%s", hangs, after, before)
		}
		p.stop(t, syscall.SIGTERM)
	}
	_, merge := begin("no such command")
	if status, text := merge(); status != 200 || gittest.Git(t, repository, "ls-files") != "1_backlog/.keep\n5_done/.keep\n5_done/1_story_login.md\nlogin.go" {
		t.Errorf("%d %s: %s", status, text, gittest.Git(t, repository, "ls-files"))
	}
	if text, err := os.ReadFile(filepath.Join(repository, "5_done/1_story_login.md")); !strings.Contains(string(text), "mine\n") {
		t.Errorf("%s, %v", text, err)
	}
}
