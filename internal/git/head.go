package git

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"switchyard/internal/files"
)

// HeadState changes when HEAD of the work tree does.
func (t Tree) HeadState() string { return stateOf(t.Git, headFiles...) }

// State changes when HEAD or the index of the work tree does.
func (t Tree) State() string { return t.HeadState() + stateOf(t.Git, "index") }

// stateOf returns what changes when files in a directory do.
func stateOf(dir string, names ...string) string {
	state := append([]byte(dir), ' ')
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && dir != "" {
			state = strconv.AppendInt(state, info.Size(), 36)
			state = strconv.AppendInt(append(state, '.'), info.ModTime().UnixNano(), 36)
		}
		state = append(state, ' ')
	}
	return string(state)
}

// Reflog notices how HEAD of a work tree comes to other commits.
type Reflog struct {
	state string
	last  []byte // its newest entry
}

// IsBehind reports whether HEAD has changed since the last call of Checkout.
func (r *Reflog) IsBehind(t Tree) bool { return t.HeadState() != r.state }

// Checkout reports whether HEAD has come to another commit by a checkout, a switch or a reset since the last call. The
// first call for a work tree, and what its reflog does not say, is none.
func (r *Reflog) Checkout(t Tree) bool {
	state := t.HeadState()
	if state == r.state {
		return false
	}
	known := strings.HasPrefix(r.state, t.Git+" ")
	r.state = state
	text, _ := files.ReadEnd(filepath.Join(t.Git, "logs", "HEAD"), files.Small)
	text = bytes.TrimSuffix(text, []byte("\n"))
	before := r.last
	r.last = text[bytes.LastIndexByte(text, '\n')+1:]
	if at := bytes.LastIndex(text, before); at >= 0 && len(before) > 0 {
		text = text[at+len(before):]
	} else { // it has been shortened, or there are many more
		text = r.last
	}
	for entry := range bytes.Lines(text) {
		about, message, _ := bytes.Cut(entry, []byte("\t")) // old new who when
		fields := bytes.Fields(about)
		byHand := bytes.HasPrefix(message, []byte("checkout: ")) || bytes.HasPrefix(message, []byte("reset: "))
		if known && byHand && len(fields) > 2 && !bytes.Equal(fields[0], fields[1]) {
			return true
		}
	}
	return false
}

// HasOnlyCommitted reports whether HEAD has come from a commit to where it is by commits alone, as its reflog says.
func (t Tree) HasOnlyCommitted(since string) bool {
	text, _ := files.ReadEnd(filepath.Join(t.Git, "logs", "HEAD"), files.Small)
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	for i := len(lines) - 1; i >= 0 && len(since) > 0; i-- {
		about, message, _ := bytes.Cut(lines[i], []byte("\t"))
		fields := bytes.Fields(about) // old new who when
		if len(fields) < 2 || string(fields[1]) == since {
			return len(fields) > 1
		}
		if !bytes.HasPrefix(message, []byte("commit: ")) && !bytes.HasPrefix(message, []byte("commit (amend): ")) {
			return false
		}
		if string(fields[0]) == since {
			return true
		}
	}
	return false
}

// OwnCommits returns the commits that were made in the work tree since something else was last checked out, with what
// they say first, as its reflog says.
func (t Tree) OwnCommits() map[string]string {
	text, _ := files.ReadEnd(filepath.Join(t.Git, "logs", "HEAD"), files.Small)
	made := map[string]string{}
	for line := range bytes.Lines(text) {
		about, message, _ := bytes.Cut(line, []byte("\t"))
		fields := bytes.Fields(about) // old new who when
		switch {
		case bytes.HasPrefix(message, []byte("checkout: ")), bytes.HasPrefix(message, []byte("reset: ")):
			clear(made)
		case bytes.HasPrefix(message, []byte("commit")) && len(fields) > 1:
			_, subject, _ := strings.Cut(string(message), ": ")
			made[string(fields[1])] = subject
		}
	}
	return made
}
