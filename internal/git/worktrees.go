package git

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Worktree is a work tree as the repository lists it.
type Worktree struct {
	Path, Head, Branch string // no branch: ""
	Bare               bool
}

// Worktrees returns the repository's work trees, its own one first, without those of merges.
func (r Repository) Worktrees(ctx context.Context) (trees []Worktree, err error) {
	err = r.Records(ctx, nil, 0, func(record []byte) error {
		key, value, _ := strings.Cut(string(record), " ")
		if key == "worktree" {
			trees = append(trees, Worktree{Path: value})
		}
		if len(trees) == 0 {
			return nil
		}
		switch t := &trees[len(trees)-1]; key {
		case "HEAD":
			t.Head = value
		case "branch":
			t.Branch = strings.TrimPrefix(value, "refs/heads/")
		case "bare":
			t.Bare = true
		}
		return nil
	}, "worktree", "list", "--porcelain", "-z")
	return slices.DeleteFunc(trees, func(t Worktree) bool { return isTemporary(t.Path) }), err
}

// IsLinked reports whether a path is that of a work tree of the repository, whatever the repository says: it must lead
// back to that, and belong to whoever may be read.
func (t Tree) IsLinked(path string) (linked Tree, is bool) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Tree{}, false
	}
	linked, found := Find(resolved)
	common, err := filepath.EvalSymlinks(linked.Common)
	ours, failed := filepath.EvalSymlinks(t.Common)
	return linked, found && err == nil && failed == nil && linked.Dir == resolved && common == ours
}

// Newest returns when HEAD or the index of the work tree was written last.
func (t Tree) Newest() (newest time.Time) {
	for _, name := range append([]string{"index"}, headFiles...) {
		if info, err := os.Stat(filepath.Join(t.Git, name)); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest
}

// RefsState changes when branches do. It looks at the directories of branches with such names.
func (t Tree) RefsState(dirs []string) string {
	var state strings.Builder
	for _, name := range append([]string{"packed-refs", "worktrees", "refs/heads"}, dirs...) {
		if info, err := os.Stat(filepath.Join(t.Common, filepath.FromSlash(name))); err == nil {
			state.WriteString(strconv.FormatInt(info.ModTime().UnixNano(), 36))
		}
		state.WriteByte(' ')
	}
	return state.String()
}

// Branch is a local branch.
type Branch struct{ Name, Head string }

// Branches returns the local branches with tips since a time, the newest first, at most most.
func (r Repository) Branches(ctx context.Context, since time.Time, most int) (branches []Branch, err error) {
	err = r.Records(ctx, nil, '\n', func(line []byte) error {
		fields := strings.SplitN(string(line), " ", 3)
		if len(fields) < 3 {
			return nil
		}
		seconds, err := strconv.ParseInt(fields[1], 10, 64)
		if name, is := strings.CutPrefix(fields[2], "refs/heads/"); is && err == nil && seconds >= since.Unix() {
			branches = append(branches, Branch{name, fields[0]})
		}
		return nil
	}, "for-each-ref", "--sort=-committerdate", "--count="+strconv.Itoa(most),
		"--format=%(objectname) %(committerdate:unix) %(refname)", "refs/heads")
	return branches, err
}

// Merged is what a merge would give.
type Merged struct {
	Tree      string
	Conflicts []string // paths
}

// Tip returns the commit of a local branch, "" for none.
func (r Repository) Tip(ctx context.Context, branch string) (string, error) {
	hash, err := r.Output(ctx, "show-ref", "--verify", "--hash", "--", "refs/heads/"+branch)
	if Exit(err) != 0 && strings.Contains(err.Error(), "not a valid ref") {
		return "", nil
	}
	return hash, err
}

// Merges says what merges of commits into a base would give, in their order, as far as git can say. What git writes for
// that is not kept.
func (r Repository) Merges(ctx context.Context, t Tree, base string, commits []string) (merges []Merged, err error) {
	objects, remove, err := TempDir()
	if err != nil {
		return nil, err
	}
	defer remove()
	r.dir = t.Dir // paths are told from there
	if r, err = r.WithoutDrivers(ctx); err != nil {
		return nil, err
	}
	r.env = append(r.env, "GIT_OBJECT_DIRECTORY="+objects,
		"GIT_ALTERNATE_OBJECT_DIRECTORIES="+strconv.Quote(filepath.Join(t.Common, "objects")))
	var pairs strings.Builder
	for _, commit := range commits {
		pairs.WriteString(base + " " + commit + "\n")
	}
	err = r.Stream(ctx, strings.NewReader(pairs.String()), func(out *bufio.Reader) error {
		for {
			clean, err := ReadRecord(out, 0)
			if clean == nil || err != nil {
				return err
			}
			conflicts := strings.TrimSpace(string(clean)) == "0"
			m := Merged{Conflicts: []string{}}
			tree, err := ReadRecord(out, 0)
			m.Tree = string(tree)
			for path := tree; conflicts && len(path) > 0 && err == nil; {
				if path, err = ReadRecord(out, 0); len(path) > 0 {
					m.Conflicts = append(m.Conflicts, string(path))
				}
			}
			// messages: how many paths, these, a kind and a text
			for err == nil {
				var record []byte
				if record, err = ReadRecord(out, 0); len(record) == 0 {
					break
				}
				count, _ := strconv.Atoi(string(record))
				for range count + 2 {
					if _, err = ReadRecord(out, 0); err != nil {
						break
					}
				}
			}
			if err != nil {
				return err
			}
			merges = append(merges, m)
		}
	}, "merge-tree", "--write-tree", "--name-only", "--stdin")
	return merges, err
}
