package git

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"switchyard/internal/files"
)

// Advance moves the branch of the work tree that is merged into on to a commit that includes the uncommitted changes to
// the files at paths, which are dropped. It returns Refused, and changes nothing, if git would overwrite anything else
// uncommitted. No hooks run.
func (m *Merge) Advance(ctx context.Context, commit string, paths ...string) error {
	ctx = context.WithoutCancel(ctx)
	r, err := Open(m.into.Dir).without(ctx, "branch."+m.into.Branch()+".mergeoptions")
	if err != nil {
		return err
	}
	if head, err := r.Head(ctx); err != nil || head != m.Base {
		return errors.Join(err, &Refused{"HEAD has moved on meanwhile"})
	}
	away := &away{tree: m.into, Base: m.Base, Commit: commit}
	if err := away.take(ctx, r, paths); err != nil {
		return errors.Join(err, away.putBack(ctx))
	}
	// It runs to its end even if this process is killed.
	cmd := r.command(ctx, slices.Concat(mergeCommand, []string{"--ff-only", "--no-overwrite-ignore", "--quiet", commit}))
	var end outputTail
	cmd.Stdout, cmd.Stderr = &end, &end
	if err := cmd.Run(); err != nil {
		return errors.Join(refusal(ctx, end.String(), err), away.putBack(ctx))
	}
	for _, path := range paths { // git does not write files that the merge did not change
		if _, err := os.Lstat(filepath.Join(m.into.Dir, path)); os.IsNotExist(err) {
			_, _ = r.Output(ctx, "checkout-index", "--quiet", "--", path) // if git has it
		}
	}
	return away.drop()
}

// Try returns Refused if git would overwrite something uncommitted, except for files at paths, as Advance would. It
// changes nothing.
func (m *Merge) Try(ctx context.Context, commit string, paths ...string) error {
	r, err := Open(m.into.Dir).WithoutDrivers(ctx)
	if err != nil {
		return err
	}
	dir, remove, err := TempDir()
	if err != nil {
		return err
	}
	defer remove()
	index := filepath.Join(dir, "index")
	text, err := os.ReadFile(filepath.Join(m.into.Git, "index"))
	if err == nil {
		err = os.WriteFile(index, text, 0o600)
	}
	if err != nil {
		return err
	}
	other := m.repository
	other.env = append(slices.Clip(other.env), "GIT_INDEX_FILE="+index+"-other")
	r.env = append(r.env, "GIT_INDEX_FILE="+index)
	asBase := append([]string{"reset", "--quiet", m.Base, "--"}, paths...) // git leaves alone what does not differ
	if _, err := other.Output(ctx, "read-tree", commit); err != nil {
		return err
	}
	if len(paths) > 0 {
		_, failed := other.Output(ctx, asBase...)
		if _, err := r.Output(ctx, asBase...); err != nil || failed != nil {
			return errors.Join(err, failed)
		}
	}
	tree, err := other.Output(ctx, "write-tree")
	if err != nil {
		return err
	}
	if _, err := r.Output(ctx, "update-index", "-q", "--refresh"); err != nil && Exit(err) != 1 { // 1: something differs
		return err
	}
	cmd := r.command(ctx, []string{"read-tree", "--dry-run", "-m", "-u", m.Base, tree})
	var end outputTail
	cmd.Stdout, cmd.Stderr = &end, &end
	if err := cmd.Run(); err != nil {
		return refusal(ctx, "What is not committed would be overwritten by merge.\n"+end.String(), err)
	}
	return m.tryIgnored(ctx, r, tree)
}

// tryIgnored returns Refused if a tree has a file in place of an ignored one: read-tree would overwrite it.
func (m *Merge) tryIgnored(ctx context.Context, r Repository, tree string) error {
	ask := []string{"ls-files", "--others", "--"}
	err := r.Records(ctx, nil, 0, func(path []byte) error {
		if _, err := os.Lstat(filepath.Join(m.into.Dir, string(path))); err == nil && len(ask) < 1000 {
			ask = append(ask, string(path))
		}
		return nil
	}, "diff", "--name-only", "-z", "--no-renames", "--diff-filter=A", m.Base, tree, "--")
	if err != nil || len(ask) == 3 {
		return err
	}
	found, err := r.Output(ctx, ask...)
	if err == nil && found != "" {
		err = &Refused{"The following untracked files would be overwritten by merge:\n" + printable(found)}
	}
	return err
}

// away are files of a work tree that are moved out of git's way. The record of that survives a kill.
type away struct {
	tree         Tree
	Base, Commit string
	Paths        []string
}

func (a *away) dir() string { return filepath.Join(a.tree.Git, "switchyard-merge") }

func (a *away) file(i int) string { return filepath.Join(a.dir(), strconv.Itoa(i)) }

// away returns what a killed merge has left out of the way.
func (t Tree) away() (a *away, found bool) {
	a = &away{tree: t}
	text, err := files.Read(filepath.Join(a.dir(), "list"), files.Small)
	return a, err == nil && json.Unmarshal(text, a) == nil
}

// take moves away the files at paths that differ from HEAD or are not in it, and removes them from the index.
func (a *away) take(ctx context.Context, r Repository, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	differs := []string{"reset", "--quiet", "--"}
	err := r.Records(ctx, nil, 0, func(record []byte) error {
		differs = append(differs, string(record[min(3, len(record)):]))
		return nil
	}, append([]string{"status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--"}, paths...)...)
	if err != nil || len(differs) == 3 {
		return err
	}
	a.Paths = differs[3:]
	index, err := os.ReadFile(filepath.Join(a.tree.Git, "index"))
	if err != nil {
		return err
	}
	list, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(a.dir(), 0o700); err != nil {
		return err
	}
	err = errors.Join(files.WriteAtomic(filepath.Join(a.dir(), "index"), index),
		files.WriteAtomic(filepath.Join(a.dir(), "list"), list))
	for i, path := range a.Paths {
		if err == nil {
			if err = os.Rename(filepath.Join(a.tree.Dir, path), a.file(i)); os.IsNotExist(err) {
				err = nil
			}
		}
	}
	if err == nil {
		_, err = r.Output(ctx, differs...)
	}
	return err
}

// putBack puts everything back where it was, unless git has the commit.
func (a *away) putBack(ctx context.Context) error {
	if a.Paths == nil {
		return nil
	}
	r := Open(a.tree.Dir)
	head, err := r.Head(ctx)
	if err != nil || head == a.Commit || r.Contains(ctx, head, a.Commit) {
		return errors.Join(err, a.drop())
	}
	root, err := os.OpenRoot(a.tree.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for i, path := range a.Paths {
		back := filepath.Join(a.tree.Dir, path)
		if _, gone := root.Lstat(path); os.IsNotExist(gone) && root.MkdirAll(filepath.Dir(path), 0o777) == nil {
			if failed := os.Rename(a.file(i), back); !os.IsNotExist(failed) {
				err = errors.Join(err, failed)
			}
		}
	}
	if index := filepath.Join(a.tree.Git, "index"); err == nil && head == a.Base {
		err = replaceFile(filepath.Join(a.dir(), "index"), index)
	}
	return errors.Join(err, a.drop())
}

// replaceFile gives a file the name and mode of another.
func replaceFile(path, other string) error {
	if info, err := os.Stat(other); err == nil {
		_ = os.Chmod(path, info.Mode())
	}
	return os.Rename(path, other)
}

func (a *away) drop() error { return os.RemoveAll(a.dir()) }
