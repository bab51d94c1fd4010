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

	"switchyard/internal/files"
)

// Worktree is a work tree and what is checked out there.
type Worktree struct {
	Tree
	Path   string // as the repository records it
	Branch string // "" for none
	Head   string // "" if only its branch is known
}

// maxWorktrees is how many work trees are examined to find the newest.
const maxWorktrees = 10_000

// Others returns the newest other work trees of the repository, at most most, without those of merges; the branches of
// the rest; and paths that lack one. It only reads files: git would wait on a pipe, and read a device.
func (t Tree) Others(most int) (trees []Worktree, rest, missing []string) {
	var names []string
	if dir, err := os.Open(filepath.Join(t.Common, "worktrees")); err == nil {
		names, _ = dir.Readdirnames(maxWorktrees)
		dir.Close()
	}
	linked := []Tree{{Dir: filepath.Dir(t.Common), Git: t.Common}} // the repository's first, unless that is bare
	newest := map[string]time.Time{t.Common: linked[0].Newest()}
	for _, name := range names {
		own := Tree{Git: filepath.Join(t.Common, "worktrees", name)}
		info, err := os.Lstat(own.Git)
		text, _ := files.Read(filepath.Join(own.Git, "gitdir"), files.Small)
		path := within(own.Git, string(text))
		if err != nil || !info.IsDir() || len(text) == 0 || isTemporary(filepath.Dir(path)) {
			continue
		}
		own.Dir = filepath.Dir(path)
		linked, newest[own.Git] = append(linked, own), own.Newest()
	}
	slices.SortStableFunc(linked, func(a, b Tree) int { return newest[b.Git].Compare(newest[a.Git]) })
	for _, own := range linked {
		if len(trees) == most {
			rest = append(rest, own.Branch())
			continue
		}
		tree, is := t.IsLinked(own.Dir)
		switch {
		case is && tree.Dir != t.Dir:
			trees = append(trees, Worktree{Tree: tree, Path: own.Dir, Branch: tree.Branch(), Head: tree.detached()})
		case !is && own.Git != t.Common:
			missing = append(missing, own.Dir)
		}
	}
	return trees, rest, missing
}

// IsLinked reports whether a path is that of a work tree of the repository, whatever the repository says: it must lead
// back there, and have an owner whose files may be read.
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

// RefsState changes whenever branches do. It looks at the directories of branches with such names.
func (t Tree) RefsState(dirs []string) string {
	return stateOf(t.Common, append([]string{"packed-refs", "worktrees", "refs/heads"}, dirs...)...)
}

// Branch is a local branch.
type Branch struct{ Name, Head string }

// Branches returns the local branches with tips since a time, newest first, at most most; if there are patterns, only
// those whose whole names match one.
func (r Repository) Branches(
	ctx context.Context, since time.Time, most int, patterns ...string,
) (branches []Branch, err error) {
	if len(patterns) == 0 {
		patterns = []string{"refs/heads"}
	}
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
	}, append([]string{
		"for-each-ref", "--sort=-committerdate", "--count=" + strconv.Itoa(most),
		"--format=%(objectname) %(committerdate:unix) %(refname)",
	}, patterns...)...)
	return branches, err
}

// Merged is what a merge would give.
type Merged struct {
	Tree      string
	Conflicts []string // paths
}

// maxBranch is more than the length of any branch's name, which is a path.
const maxBranch = 4096

// Tip returns the commit of a local branch, "" if there is none, whatever is given as its name.
func (r Repository) Tip(ctx context.Context, branch string) (string, error) {
	if len(branch) > maxBranch || strings.Contains(branch, "\x00") {
		return "", nil // no program takes such an argument
	}
	hash, err := r.Output(ctx, "show-ref", "--verify", "--hash", "--", "refs/heads/"+branch)
	if Exit(err) != 0 && !IsNoRepository(err) {
		return "", nil
	}
	return hash, err
}

// Merges says what merging commits into a base would give, in order, as far as git can tell. What git writes for that
// is not kept.
func (r Repository) Merges(ctx context.Context, t Tree, base string, commits []string) (merges []Merged, err error) {
	objects, remove, err := TempDir()
	if err != nil {
		return nil, err
	}
	defer remove()
	r.dir = t.Dir // paths are reported relative to it
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
			// messages: the number of paths, the paths, a kind and a text
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
