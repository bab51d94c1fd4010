package git

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/files"
)

const (
	// mergeTree is the prefix of the temporary work trees in which merges are made.
	mergeTree = "switchyard-merge-"
	// mergeLimit is how long git and the hooks of the repository may take for a merge.
	mergeLimit = 10 * time.Minute
)

var (
	// ErrMerging is returned while another merge of the repository is under way.
	ErrMerging = errors.New("another merge is under way")
	// ErrMerged is returned for a commit that was merged before.
	ErrMerged = errors.New("the commit is merged already")
)

// Refused says why there was no merge, in the words of git, a hook or a command.
type Refused struct{ Words string }

func (r *Refused) Error() string { return r.Words }

// Merge is a merge into the branch of a work tree, made in a temporary one.
type Merge struct {
	Dir        string // of the temporary work tree
	Base       string
	into       Tree
	repository Repository
	unlock     func()
}

// BeginMerge makes a temporary work tree at HEAD. It returns ErrMerging.
func (t Tree) BeginMerge(ctx context.Context, author string) (*Merge, error) {
	unlock, err := files.LockDir(t.Common)
	if errors.Is(err, files.ErrLocked) {
		err = ErrMerging
	}
	if err != nil {
		return nil, err
	}
	m := &Merge{into: t, unlock: unlock}
	t.sweep()
	own, err := Open(t.Dir).WithoutDrivers(ctx)
	if err == nil {
		m.Base, err = own.Head(ctx)
	}
	if err == nil {
		m.Dir, err = os.MkdirTemp("", mergeTree+"*")
	}
	if err == nil {
		own.limit = mergeLimit
		_, err = own.Output(ctx, "worktree", "add", "--detach", m.Dir, m.Base)
	}
	if err != nil {
		return nil, errors.Join(err, m.End())
	}
	m.repository = own
	m.repository.dir = m.Dir
	m.repository.env = append(m.repository.env, "GIT_AUTHOR_NAME="+identity(author), "GIT_AUTHOR_EMAIL="+Email,
		"GIT_COMMITTER_NAME="+committer, "GIT_COMMITTER_EMAIL="+Email)
	return m, nil
}

// End removes the temporary work tree.
func (m *Merge) End() error {
	defer m.unlock()
	if m.Dir == "" {
		return nil
	}
	return errors.Join(os.RemoveAll(m.Dir), m.into.forget(filepath.Base(m.Dir)))
}

// forget removes the repository's record of a temporary work tree.
func (t Tree) forget(name string) error {
	root, err := os.OpenRoot(t.Common)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.RemoveAll(filepath.Join("worktrees", name))
}

// Sweep removes the temporary work trees of merges whose process was killed.
func (t Tree) Sweep() {
	if unlock, err := files.LockDir(t.Common); err == nil { // otherwise one is under way
		defer unlock()
		t.sweep()
	}
}

func (t Tree) sweep() {
	if away, found := t.away(); found {
		_ = away.putBack(context.Background())
	}
	entries, _ := os.ReadDir(filepath.Join(t.Common, "worktrees"))
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), mergeTree) {
			continue
		}
		temporary := filepath.Join(files.Resolved(os.TempDir()), entry.Name())
		text, _ := files.Read(filepath.Join(t.Common, "worktrees", entry.Name(), "gitdir"), files.Small)
		if strings.TrimSpace(string(text)) == filepath.Join(temporary, ".git") {
			_ = os.RemoveAll(temporary)
		}
		_ = t.forget(entry.Name())
	}
}

// isTemporary reports whether a work tree is that of a merge.
func isTemporary(path string) bool { return strings.HasPrefix(filepath.Base(path), mergeTree) }

// mergeCommand overrides the repository's configuration.
var mergeCommand = []string{
	"merge", "--no-stat", "--no-autostash", "--no-verify-signatures", "--no-rerere-autoupdate", "--cleanup=verbatim",
}

// Join merges a commit, running the repository's hooks. It returns Refused for a conflict and if a hook refuses, and
// ErrMerged.
func (m *Merge) Join(ctx context.Context, commit, message string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, mergeLimit, ErrCutOff)
	defer cancel()
	r := m.repository
	r.hooks = true
	words, err := runForOutput(r.command(ctx, slices.Concat(mergeCommand, []string{
		"--no-ff", "--no-edit", "--no-log", "--strategy=ort", "-m", printable(message), commit,
	})))
	if err != nil {
		return refusal(ctx, words, err)
	}
	head, err := m.repository.Head(ctx)
	if err == nil && head == m.Base {
		err = ErrMerged
	}
	return err
}

func refusal(ctx context.Context, words string, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), ErrCutOff):
		return &Refused{strings.TrimSpace(words + "\nIt took too long.")}
	case ctx.Err() != nil:
		return ctx.Err()
	case Exit(err) == 0: // it could not be run
		return err
	case words == "":
		words = err.Error()
	}
	return &Refused{words}
}

// Amend adds files, as they are in the temporary work tree, to the merge. No hooks run.
func (m *Merge) Amend(ctx context.Context, paths ...string) error {
	r := m.repository
	known := map[string]bool{}
	err := r.Records(ctx, nil, 0, func(path []byte) error {
		known[string(path)] = true
		return nil
	}, append([]string{"ls-files", "-z", "--cached", "--others", "--"}, paths...)...)
	if err != nil || len(known) == 0 {
		return err
	}
	add := []string{"add", "--all", "--force", "--"}
	for path := range known {
		add = append(add, path)
	}
	if _, err := r.Output(ctx, add...); err != nil {
		return err
	}
	_, err = r.Output(ctx, "diff", "--cached", "--quiet", "HEAD")
	if Exit(err) == 1 {
		_, err = r.Output(ctx, "commit", "--amend", "--no-edit", "--quiet", "--no-verify", "--cleanup=verbatim")
	}
	return err
}

// Run runs a command in the temporary work tree. It returns Refused if that fails or takes too long.
func (m *Merge) Run(ctx context.Context, command string, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrCutOff)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Env = m.Dir, others()
	if words, err := runForOutput(cmd); err != nil {
		return refusal(ctx, words, err)
	}
	return nil
}

// Commit returns the commit made by the merge. It returns Refused if a file has a filter, which would not be run when
// the file is written.
func (m *Merge) Commit(ctx context.Context) (commit string, err error) {
	if commit, err = m.repository.Head(ctx); err != nil {
		return "", err
	}
	var paths strings.Builder
	err = m.repository.Records(ctx, nil, 0, func(path []byte) error {
		paths.Write(append(path, 0))
		return nil
	}, "diff", "--name-only", "-z", "--no-renames", m.Base, commit, "--")
	if err != nil {
		return "", err
	}
	filtered, err := m.repository.filtered(ctx, strings.NewReader(paths.String()), "--stdin")
	if err == nil && filtered != "" {
		err = &Refused{filtered + " has a filter, which is not run"}
	}
	return commit, err
}

// BaseFile returns a file of the base, fs.ErrNotExist if there is none.
func (m *Merge) BaseFile(ctx context.Context, path string) (content []byte, err error) {
	id, err := m.repository.Output(ctx, "rev-parse", "--verify", "--quiet", m.Base+":"+path)
	if Exit(err) == 1 {
		return nil, fs.ErrNotExist
	}
	if err == nil {
		err = m.repository.Blobs(ctx, func(read func(id string) []byte) { content = read(id) })
	}
	return content, err
}

// Blend merges two versions of a file. It returns Refused for a conflict.
func (m *Merge) Blend(ctx context.Context, merged, base, ours []byte) (blended []byte, err error) {
	dir, remove, err := TempDir()
	if err != nil {
		return nil, err
	}
	defer remove()
	args := []string{"merge-file", "-p", "--quiet"}
	for i, content := range [][]byte{merged, base, ours} {
		args = append(args, filepath.Join(dir, strconv.Itoa(i)))
		err = errors.Join(err, os.WriteFile(args[len(args)-1], content, 0o600))
	}
	if err != nil {
		return nil, err
	}
	err = m.repository.Stream(ctx, nil, func(out *bufio.Reader) (err error) {
		blended, err = io.ReadAll(io.LimitReader(out, MaxBlob))
		return err
	}, args...)
	if Exit(err) > 0 {
		err = &Refused{"what is not committed of the story's file conflicts with the branch's"}
	}
	return blended, err
}
