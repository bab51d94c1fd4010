package git

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"switchyard/internal/files"
)

// Tree is a work tree.
type Tree struct {
	Dir string // its top
	Git string // its git directory
	// Common is the git directory of the repository: Git, except for a linked work tree.
	Common string
}

// Find returns the work tree that dir is in, without running git. Like git, it ignores a .git that belongs to somebody
// else: its owner must be the user of this process, or the owner of dir.
func Find(dir string) (Tree, bool) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return Tree{}, false
	}
	info, err := os.Stat(dir)
	if err != nil {
		return Tree{}, false
	}
	for {
		tree := Tree{Dir: dir, Git: filepath.Join(dir, ".git")}
		if tree.open() && isOwned(info, tree.Dir, filepath.Join(dir, ".git"), tree.Git) {
			return tree, true
		}
		if dir == filepath.Dir(dir) || isBare(dir) {
			return Tree{}, false
		}
		dir = filepath.Dir(dir)
	}
}

// open finds the git directories that .git leads to. It reports whether there are any.
func (t *Tree) open() bool {
	info, err := os.Stat(t.Git)
	if err == nil && !info.IsDir() { // of a linked work tree or a submodule
		text, _ := files.Read(t.Git, files.Small)
		path, named := strings.CutPrefix(string(text), "gitdir:")
		if !named {
			return false
		}
		t.Git = within(t.Dir, path)
		info, err = os.Stat(t.Git)
	}
	if err != nil || !info.IsDir() {
		return false
	}
	t.Common = t.Git
	if text, err := files.Read(filepath.Join(t.Git, "commondir"), files.Small); err == nil {
		t.Common = within(t.Git, string(text))
	}
	return !t.hasIrregularFiles()
}

// plain are files that git reads whole, and maxPlain how large they may be.
var plain = strings.Fields(`HEAD index config config.worktree packed-refs shallow info/attributes info/exclude
	info/grafts info/sparse-checkout objects/info/alternates objects/info/commit-graph`)

const maxPlain = 256 << 20

// hasIrregularFiles reports whether something else is in the place of a file that git reads: it would wait on a pipe,
// and read a device to its end.
func (t *Tree) hasIrregularFiles() bool {
	return slices.ContainsFunc(plain, func(name string) bool {
		for _, dir := range []string{t.Git, t.Common} {
			info, err := os.Stat(filepath.Join(dir, name))
			if err == nil && (!info.Mode().IsRegular() || info.Size() > maxPlain) {
				return true
			}
			if t.Git == t.Common {
				break
			}
		}
		return false
	})
}

// isBare reports whether a directory is a repository without a work tree; git does not look above it either.
func isBare(dir string) bool {
	return !slices.ContainsFunc([]string{"HEAD", "objects", "refs"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err != nil
	})
}

func within(dir, path string) string {
	if path = strings.TrimSpace(path); filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// isOwned reports whether all paths belong to the user of this process, or to the owner of a file.
func isOwned(like fs.FileInfo, paths ...string) bool {
	return !slices.ContainsFunc(paths, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || !files.IsOurs(info, like)
	})
}

// IsBusy reports whether git is changing the work tree.
func (t Tree) IsBusy() bool {
	return slices.ContainsFunc([]string{"index.lock", "rebase-merge", "rebase-apply"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(t.Git, name))
		return err == nil
	})
}

// IndexWritten returns when the index was written, which git does before it moves HEAD; zero if there is none.
func (t Tree) IndexWritten() time.Time {
	info, err := os.Stat(filepath.Join(t.Git, "index"))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Branch returns the name of the branch that is checked out, "" for none.
func (t Tree) Branch() string {
	text, _ := files.Read(filepath.Join(t.Git, "HEAD"), files.Small)
	branch, ok := strings.CutPrefix(string(text), "ref: refs/heads/")
	if !ok {
		return ""
	}
	return strings.TrimSpace(branch)
}

// detached returns the commit of a detached HEAD, "" otherwise.
func (t Tree) detached() string {
	text, _ := files.Read(filepath.Join(t.Git, "HEAD"), files.Small)
	if hash := strings.TrimSpace(string(text)); len(hash) >= 40 && strings.Trim(hash, "0123456789abcdef") == "" {
		return hash
	}
	return ""
}

// HEAD changes with the branch, its reflog with the commit.
var headFiles = []string{"HEAD", filepath.Join("logs", "HEAD")}

// Shallow returns the commits whose parents a shallow clone lacks.
func (t Tree) Shallow() (commits map[string]bool, err error) {
	text, err := files.Read(filepath.Join(t.Common, "shallow"), files.Large)
	if os.IsNotExist(err) {
		return nil, nil
	}
	commits = map[string]bool{}
	for hash := range strings.FieldsSeq(string(text)) {
		commits[hash] = true
	}
	return commits, err
}
