package gitlog

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

// timeLimit is how long one git command may run.
const timeLimit = time.Minute

// hardening keeps git from running programs named in a repository's or user's configuration, from prompting, and from
// using the network. Whether the repository may be read at all (safe.directory) is up to git's configuration.
var hardening = []string{
	"--no-pager", "--no-replace-objects",
	"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.bareRepository=explicit",
	"-c", "log.showSignature=false", "-c", "log.follow=false", "-c", "log.showRoot=true", "-c", "gc.auto=0",
	"-c", "core.bigFileThreshold=16m", // the lines of a larger file are not counted: git would hold all of it
}

type repository struct {
	git string // the path of the program
	dir string
}

// environment returns our environment without GIT_ variables, which might point git at another repository.
func environment() []string {
	env := []string{
		"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=", // none, whatever the repository's configuration allows
	}
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// errEnough is what a reader of git's output returns to end git.
var errEnough = errors.New("enough")

// stream runs git with input and passes its output to read. Output that read leaves is discarded. Exceeding timeLimit
// is not an error: what has been read by then counts.
func (r repository) stream(ctx context.Context, input io.Reader, read func(*bufio.Reader) error, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.git, append(append(hardening[:len(hardening):len(hardening)], "-C", r.dir),
		args...)...)
	cmd.Env, cmd.Stdin, cmd.WaitDelay = environment(), input, time.Second
	var stderr limitedBuffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := read(bufio.NewReaderSize(out, maxRecord))
	if errors.Is(readErr, errEnough) {
		cancel()
	}
	_, _ = io.Copy(io.Discard, out) // so that git can end; its errors are those of Wait
	err = cmd.Wait()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(readErr, errEnough):
		return nil
	case err != nil:
		return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return readErr
}

func (r repository) output(ctx context.Context, args ...string) (string, error) {
	var text string
	err := r.stream(ctx, nil, func(out *bufio.Reader) error {
		all, err := io.ReadAll(io.LimitReader(out, maxRecord))
		text = strings.TrimSpace(string(all))
		return err
	}, args...)
	return text, err
}

// head returns the hash of HEAD, "" when there is no commit yet.
func (r repository) head(ctx context.Context) (string, error) {
	hash, err := r.output(ctx, "rev-parse", "--verify", "--quiet", "HEAD")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return "", nil
	}
	return hash, err
}

// contains reports whether old is an ancestor of new. An old commit that no longer exists is not.
func (r repository) contains(ctx context.Context, new, old string) bool {
	_, err := r.output(ctx, "merge-base", "--is-ancestor", old, new)
	return err == nil
}

// limitedBuffer keeps the first kilobyte written to it.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), 1024-min(1024, b.Len()))])
	return len(p), nil
}
