package git

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Commit describes a commit of files of a work tree.
type Commit struct {
	Author, Subject string
	// Paths are relative to the repository's directory. Only files that are tracked, or new and not ignored, count.
	Paths []string
}

const (
	committer = "switchyard"
	// Email is everybody's address in the commits made here.
	Email = committer + "@localhost"
	// lockWait is how long to wait for another git that is writing the index, lockPoll how often to check that.
	lockWait, lockPoll = 5 * time.Second, 20 * time.Millisecond
)

// underWay are the files of a git directory that show that something is unfinished.
var underWay = []string{
	"MERGE_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG", "CHERRY_PICK_HEAD", "REVERT_HEAD",
}

func (t Tree) has(name string) bool {
	_, err := os.Lstat(filepath.Join(t.Git, name))
	return err == nil
}

// IsUnderWay reports whether a merge, a rebase or the like is unfinished in the work tree.
func (t Tree) IsUnderWay() bool { return slices.ContainsFunc(underWay, t.has) }

// UnderWay returns what git says about a merge, a rebase or the like in the work tree, or who holds its index for
// seconds. It is "" if nothing prevents a commit.
func (t Tree) UnderWay(ctx context.Context) (words string, err error) {
	if t.IsUnderWay() {
		r, err := Open(t.Dir).WithoutDrivers(ctx)
		if err != nil {
			return "", err
		}
		text, err := r.Output(ctx, "status", "--untracked-files=no")
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "You are ") || strings.HasPrefix(line, "You have ") ||
				strings.HasPrefix(line, "All conflicts ") || strings.Contains(line, " in progress") {
				return line, err
			}
		}
		return "a merge, rebase or bisect is in progress", err
	}
	for end := time.Now().Add(lockWait); t.has("index.lock"); {
		if time.Now().After(end) || ctx.Err() != nil {
			return "Another git process seems to be running: index.lock exists", nil
		}
		time.Sleep(lockPoll)
	}
	return "", nil
}

// Tracks reports whether HEAD or the index has files at any of the paths.
func (r Repository) Tracks(ctx context.Context, paths ...string) (tracks bool, err error) {
	if head, err := r.Head(ctx); head == "" || err != nil {
		return false, err
	}
	err = r.Records(ctx, nil, 0, func([]byte) error {
		tracks = true
		return ErrEnough
	}, append([]string{"ls-files", "-z", "--with-tree=HEAD", "--"}, paths...)...)
	return tracks, err
}

// Filtered returns the first of the paths whose content passes through a filter program, "" for none: it cannot be
// committed here, since no program is run.
func (r Repository) Filtered(ctx context.Context, paths ...string) (filtered string, err error) {
	return r.filtered(ctx, nil, append([]string{"--"}, paths...)...)
}

func (r Repository) filtered(ctx context.Context, input io.Reader, paths ...string) (filtered string, err error) {
	var fields []string // path attribute value
	err = r.Records(ctx, input, 0, func(field []byte) error {
		fields = append(fields, string(field))
		if value := fields[len(fields)-1]; len(fields)%3 == 0 && value != "unspecified" && value != "unset" {
			filtered = fields[len(fields)-3]
			return ErrEnough
		}
		return nil
	}, append([]string{"check-attr", "-z", "filter"}, paths...)...)
	return filtered, err
}

// Commit commits the files as they are in the work tree and nothing else: other staged changes stay staged. It runs no
// hooks and signs nothing. If nothing differs from HEAD it does nothing.
func (r Repository) Commit(ctx context.Context, c Commit) error {
	r, err := r.WithoutDrivers(ctx)
	if err != nil {
		return err
	}
	var paths, untracked []string
	err = r.Records(ctx, nil, 0, func(record []byte) error {
		tag, path, _ := strings.Cut(string(record), " ")
		if paths = append(paths, path); tag == "?" {
			untracked = append(untracked, path)
		}
		return nil
	}, append(strings.Fields("ls-files -z -t --cached --others --exclude-standard --with-tree=HEAD --"), c.Paths...)...)
	if err != nil || len(paths) == 0 {
		return err
	}
	if len(untracked) > 0 { // git does not know what to commit of others
		if err := r.retry(ctx, append([]string{"add", "--intent-to-add", "--"}, untracked...)...); err != nil {
			return err
		}
	}
	_, err = r.Output(ctx, append([]string{"diff", "--quiet", "HEAD", "--"}, paths...)...)
	if Exit(err) != 1 { // nothing differs, or git cannot tell
		return err
	}
	r.env = append(r.env, "GIT_AUTHOR_NAME="+identity(c.Author), "GIT_AUTHOR_EMAIL="+Email,
		"GIT_COMMITTER_NAME="+committer, "GIT_COMMITTER_EMAIL="+Email)
	err = r.retry(ctx, append([]string{
		"commit", "--only", "--quiet", "--no-verify", "--cleanup=verbatim", "--message", printable(c.Subject), "--",
	}, paths...)...)
	if err != nil && len(untracked) > 0 {
		_, undo := r.Output(ctx, append([]string{"reset", "--quiet", "--"}, untracked...)...)
		err = errors.Join(err, undo)
	}
	return err
}

// retry runs a command that writes the index, which another git may have locked.
func (r Repository) retry(ctx context.Context, args ...string) error {
	for end := time.Now().Add(lockWait); ; time.Sleep(lockPoll) {
		_, err := r.Output(ctx, args...)
		if err == nil || !strings.Contains(err.Error(), "index.lock': File exists") || time.Now().After(end) {
			return err
		}
	}
}

// identity returns a name in a form that git accepts: one without a letter or digit counts as none.
func identity(name string) string {
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	if name = printable(name); strings.ContainsFunc(name, isWord) {
		return name
	}
	return committer
}

// printable makes a text one line.
func printable(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))), " ")
}
