package git

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"switchyard/internal/files"
)

// HeadState changes when HEAD of the work tree does.
func (t Tree) HeadState() (state string) {
	for _, name := range headFiles {
		if info, err := os.Stat(filepath.Join(t.Git, name)); err == nil && t.Git != "" {
			state += fmt.Sprintln(t.Git, name, info.Size(), info.ModTime())
		}
	}
	return state
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
