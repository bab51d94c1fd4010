package git

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// WithoutDrivers returns the repository for commands that merge or read files of the work tree: they do not run
// programs that its configuration has for that, but git's own line merge. Call it each time, since the configuration
// may change.
func (r Repository) WithoutDrivers(ctx context.Context) (Repository, error) { return r.without(ctx) }

// without is WithoutDrivers that also empties keys of the configuration.
func (r Repository) without(ctx context.Context, keys ...string) (Repository, error) {
	var env []string
	count := 0
	set := func(key, value string) {
		number := strconv.Itoa(count)
		env = append(env, "GIT_CONFIG_KEY_"+number+"="+key, "GIT_CONFIG_VALUE_"+number+"="+value)
		count++
	}
	for _, key := range keys {
		set(key, "")
	}
	const drivers = `^(filter\..*\.(clean|smudge|process|required)|merge\..*\.driver|includeif\..*)$`
	err := r.Records(ctx, nil, 0, func(key []byte) error {
		if bytes.HasPrefix(key, []byte("includeif.")) {
			r.differs = true
			return nil
		}
		name := string(key[:bytes.LastIndexByte(key, '.')]) // it may contain dots and =, which -c does not accept
		switch {
		case strings.HasPrefix(name, "merge."):
			set(name+".driver", "git merge-file --marker-size=%L %A %O %B")
		default:
			set(name+".clean", "")
			set(name+".smudge", "")
			set(name+".process", "")
			set(name+".required", "false")
		}
		return nil
	}, "config", "-z", "--name-only", "--get-regexp", drivers)
	if Exit(err) == 1 { // there are none
		err = nil
	}
	r.env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(count))
	return r, err
}

// Of returns the repository in another of its work trees, whose configuration may differ.
func (r Repository) Of(ctx context.Context, t Tree) (Repository, error) {
	if _, err := os.Lstat(filepath.Join(t.Git, "config.worktree")); r.differs || !os.IsNotExist(err) {
		return Open(t.Dir).WithoutDrivers(ctx)
	}
	r.dir = t.Dir
	return r, nil
}
