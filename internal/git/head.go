package git

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"switchyard/internal/files"
)

// HeadState changes whenever HEAD of the work tree does.
func (t Tree) HeadState() string { return stateOf(t.Git, headFiles...) }

// State changes whenever HEAD or the index of the work tree does.
func (t Tree) State() string { return t.HeadState() + stateOf(t.Git, "index") }

// stateOf returns a value that changes whenever files in a directory do.
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

// entry is a reflog entry of a work tree: HEAD went from one commit to another.
type entry struct{ line, from, to, what string }

// byHand reports whether it was a checkout, a switch or a reset.
func (e entry) byHand() bool {
	return strings.HasPrefix(e.what, "checkout: ") || strings.HasPrefix(e.what, "reset: ")
}

// reflog returns the newest entries, oldest first.
func (t Tree) reflog() (entries []entry) {
	text, _ := files.ReadEnd(filepath.Join(t.Git, "logs", "HEAD"), files.Small)
	for line := range strings.Lines(string(text)) {
		about, what, _ := strings.Cut(line, "\t")
		if fields := strings.Fields(about); len(fields) > 1 { // old new who when
			entries = append(entries, entry{line, fields[0], fields[1], strings.TrimSuffix(what, "\n")})
		}
	}
	return entries
}

// Reflog notices how HEAD of a work tree moves to other commits.
type Reflog struct{ state, last string }

// IsBehind reports whether HEAD has changed since the last call of Checkout.
func (r *Reflog) IsBehind(t Tree) bool { return t.HeadState() != r.state }

// Checkout reports whether a checkout, a switch or a reset has moved HEAD to another commit since the last call. It is
// false for the first call on a work tree, and for what its reflog does not say.
func (r *Reflog) Checkout(t Tree) bool {
	state := t.HeadState()
	if state == r.state {
		return false
	}
	known, before, all := strings.HasPrefix(r.state, t.Git+" "), r.last, t.reflog()
	news := all[max(0, len(all)-1):] // it has been shortened, or there are many more
	for i, e := range slices.Backward(all) {
		if e.line == before {
			news = all[i+1:]
			break
		}
	}
	if r.state, r.last = state, ""; len(all) > 0 {
		r.last = all[len(all)-1].line
	}
	return known && slices.ContainsFunc(news, func(e entry) bool { return e.byHand() && e.from != e.to })
}

// HasOnlyCommitted reports whether HEAD has come from a commit to where it is by commits alone, going by its reflog.
func (t Tree) HasOnlyCommitted(since string) bool {
	for _, e := range slices.Backward(t.reflog()) {
		switch isCommit := strings.HasPrefix(e.what, "commit: ") || strings.HasPrefix(e.what, "commit (amend): "); {
		case e.to == since:
			return true
		case !isCommit || e.from == since:
			return isCommit
		}
	}
	return false
}

// OwnCommits returns the commits that were made in the work tree since its last checkout of something else, with the
// beginning of their messages, going by its reflog.
func (t Tree) OwnCommits() map[string]string {
	made := map[string]string{}
	for _, e := range t.reflog() {
		if e.byHand() {
			clear(made)
		} else if strings.HasPrefix(e.what, "commit") {
			_, made[e.to], _ = strings.Cut(e.what, ": ")
		}
	}
	return made
}
