package board

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A scan waits while git is at work, since a rebase moves stories there and back: gitPatience at most, for it may have
// been stopped by a conflict. Meanwhile it looks every gitPoll whether git is done.
const (
	gitPatience = 10 * time.Second
	gitPoll     = 10 * time.Millisecond
)

// gitIsAtWork reports whether git is changing the work tree that dir is in, if it is in one.
func gitIsAtWork(dir string) bool {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return false
	}
	git := filepath.Join(dir, ".git")
	for {
		if _, err := os.Lstat(git); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			return false
		}
		dir = filepath.Dir(dir)
		git = filepath.Join(dir, ".git")
	}
	if text, err := os.ReadFile(git); err == nil { // of a worktree or a submodule
		git = strings.TrimSpace(strings.TrimPrefix(string(text), "gitdir:"))
		if !filepath.IsAbs(git) {
			git = filepath.Join(dir, git)
		}
	}
	return slices.ContainsFunc([]string{"index.lock", "rebase-merge", "rebase-apply"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(git, name))
		return err == nil
	})
}
