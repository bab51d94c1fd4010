// Package git reads repositories, and commits, with the machine's git, and only this package starts it. A repository is
// not trusted: its configuration, attributes and files run no program, prompt nobody and reach no network, and git's
// output, time and memory are limited. It must never know boards and stories.
package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// timeLimit is how long a command that only reads may run.
	timeLimit = time.Minute
	// MaxRecord is how much of a record is read, in bytes.
	MaxRecord = 64 << 10
	// maxMemory is how much a command may allocate, in bytes, not counting what it only reads of packs.
	maxMemory = 2 << 30
)

// settings override the configuration of repository, user and system, except whether the repository may be read at all
// (safe.directory), which is left to user and system. Threads that look at files (core.preloadIndex) would make every
// status cost more of the processor, and there may be fifty in a row.
var settings = append(strings.Fields(`
	core.fsmonitor=false core.pager=cat core.editor=false core.askPass=false
	core.sshCommand=false core.gitProxy=false core.alternateRefsCommand=false core.attributesFile=/dev/null
	core.excludesFile=/dev/null core.untrackedCache=false core.preloadIndex=false credential.helper= gpg.program=false
	gpg.ssh.program=false gpg.x509.program=false commit.gpgSign=false tag.gpgSign=false color.ui=false
	diff.orderFile=/dev/null diff.relative=false diff.submodule=short diff.autoRefreshIndex=true
	diff.suppressBlankEmpty=false diff.renameLimit=1000 merge.renameLimit=1000
	log.showSignature=false log.follow=false log.showRoot=true log.mailmap=false log.decorate=false
	log.diffMerges=first-parent status.submoduleSummary=false submodule.recurse=false
	protocol.allow=never gc.auto=0 maintenance.auto=false safe.bareRepository=explicit
	rerere.enabled=false
	core.bigFileThreshold=16m`), noHooks) // the lines of a larger file are not counted: git would hold all of it

const noHooks = "core.hooksPath=/dev/null"

// options follow the name of a command. When log is asked for diffs, it shows a merge against its first parent (-m, by
// log.diffMerges); --diff-merges would show that unasked.
var options = map[string][]string{
	"log":    append(diffOptions, "--no-show-signature", "--no-mailmap", "--encoding=UTF-8", "-m"),
	"diff":   diffOptions,
	"status": {"--ignore-submodules=all"},
}

var diffOptions = []string{"--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all"}

// ErrEnough is what a reader of git's output returns to stop git, which is then no error.
var ErrEnough = errors.New("enough")

// ErrCutOff is returned if git was stopped before its output was complete.
var ErrCutOff = errors.New("took too long")

// Repository runs git's commands in a directory of a work tree.
type Repository struct {
	dir    string
	env    []string // on top of environment
	memory uint64
	limit  time.Duration // how long one command may run
	cpu    time.Duration // how much CPU time one may take, 0 for any
	hooks  bool          // run, with the whole environment
	// differs says that other work trees may have a different configuration.
	differs bool
}

func Open(dir string) Repository { return Repository{dir: dir, memory: maxMemory, limit: timeLimit} }

// WithCPU limits the CPU time of each command, in whole seconds. On systems other than Linux it limits nothing.
func (r Repository) WithCPU(most time.Duration) Repository {
	r.cpu = most
	return r
}

// IsInstalled reports whether there is a git to run.
func IsInstalled() bool {
	_, err := exec.LookPath("git")
	return err == nil
}

// environment returns our environment without GIT_ variables, which might point git at another repository.
func environment() []string {
	env := []string{
		"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_ATTR_NOSYSTEM=1",
		"GIT_LITERAL_PATHSPECS=1", "GIT_GRAFT_FILE=/dev/null/none",
		"GIT_ALLOW_PROTOCOL=", // none, whatever the repository's configuration allows
	}
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func (r Repository) command(ctx context.Context, args []string) *exec.Cmd {
	all := []string{"--no-pager", "--no-replace-objects", "-C", r.dir}
	for _, setting := range settings {
		if setting != noHooks || !r.hooks {
			all = append(all, "-c", setting)
		}
	}
	all = append(append(append(all, args[0]), options[args[0]]...), args[1:]...)
	cmd := exec.CommandContext(ctx, "git", all...)
	cmd.Env, cmd.WaitDelay = environment(), time.Second
	if r.hooks {
		cmd.Env = append(others(), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1")
	}
	cmd.Env = append(cmd.Env, r.env...)
	return cmd
}

// Stream runs git with input and passes its output to read. Output that read leaves is discarded. It returns ErrCutOff
// if the command takes over a minute, or more CPU time than it may, or ctx is over: then read has not seen all of the
// output.
func (r Repository) Stream(ctx context.Context, input io.Reader, read func(*bufio.Reader) error, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.limit, ErrCutOff)
	defer cancel()
	cmd := r.command(ctx, args)
	var stderr limitedBuffer
	cmd.Stdin, cmd.Stderr = input, &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	limit(cmd.Process.Pid, r.memory, r.cpu)
	readErr := read(bufio.NewReaderSize(out, MaxRecord))
	over := ctx.Err() != nil
	if readErr != nil {
		cancel()
	}
	_, _ = io.Copy(io.Discard, out) // so that git can end; its errors are those of Wait
	err = cmd.Wait()
	switch {
	case errors.Is(readErr, ErrEnough):
		return nil
	case readErr != nil && !over:
		return readErr
	case ctx.Err() != nil, wasCutOff(err):
		return fmt.Errorf("git %s: %w", args[0], ErrCutOff)
	case err != nil:
		return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// Output returns the beginning of git's output, without surrounding white space.
func (r Repository) Output(ctx context.Context, args ...string) (string, error) {
	var text string
	err := r.Stream(ctx, nil, func(out *bufio.Reader) error {
		all, err := io.ReadAll(io.LimitReader(out, MaxRecord))
		text = strings.TrimSpace(string(all))
		return err
	}, args...)
	return text, err
}

// Exit returns the exit status of a command that failed on its own, 0 for any other error.
func Exit(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(0, exit.ExitCode())
	}
	return 0
}

// IsNoRepository reports whether git failed because there is no repository. It goes by the message: the exit status,
// 128, has other causes as well.
func IsNoRepository(err error) bool {
	return Exit(err) != 0 && strings.Contains(err.Error(), "not a git repository")
}

// Head returns the hash of HEAD, "" if there is no commit yet.
func (r Repository) Head(ctx context.Context) (string, error) {
	hash, err := r.Output(ctx, "rev-parse", "--verify", "--quiet", "HEAD")
	if Exit(err) == 1 {
		return "", nil
	}
	return hash, err
}

// Contains reports whether old is an ancestor of new. An old commit that no longer exists is not.
func (r Repository) Contains(ctx context.Context, new, old string) bool {
	_, err := r.Output(ctx, "merge-base", "--is-ancestor", old, new)
	return err == nil
}

// limitedBuffer keeps the first kilobyte written to it.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), 1024-min(1024, b.Len()))])
	return len(p), nil
}
