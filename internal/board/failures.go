package board

import (
	"context"
	"maps"
	"slices"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/git"
)

// openMerges reads why merges failed, and removes what merges that were killed have left.
func (b *Board) openMerges(o Options) {
	var err error
	b.kept, err = openNotes(o.State, o.Dir, o.Layout+"\x00merges")
	b.report("read why merges failed", err)
	b.failures.Store(&b.kept.list)
	b.tracker.failure = b.failure
	if tree, inTree := git.Find(b.dir); inTree && o.AllowMerges {
		tree.Sweep()
	}
}

// failure returns why the last merge of a story failed, where none of its files says so, "" for no such failure.
func (b *Board) failure(id string) string {
	if kept := b.failures.Load(); kept != nil {
		return (*kept)[id]
	}
	return ""
}

// keepFailure keeps that for a story, "" for nothing, and forgets it of those that are gone. It is called with the
// board's mutex.
func (b *Board) keepFailure(id, words string) {
	if b.failure(id) == words {
		return
	}
	next := map[string]string{}
	if kept := b.failures.Load(); kept != nil {
		maps.Copy(next, *kept)
	}
	view := b.View()
	maps.DeleteFunc(next, func(other, _ string) bool { _, _, found := view.Find(other); return !found })
	if next[id] = words; words == "" {
		delete(next, id)
	}
	b.failures.Store(&next)
	if b.kept.path != "" {
		b.report("keep why a merge failed", b.kept.write(next))
	}
}

// fail says of a story that its merge failed: in its file, where it stands in a work tree of its own, else in the state
// directory.
func (b *Board) fail(ctx context.Context, id, words string) {
	words = domain.CutReason(words)
	ctx = context.WithoutCancel(ctx)
	if at := b.standsIn(id); at.board != nil && at.worktree != "" {
		details, err := at.board.readOwn(at.id)
		if err == nil {
			_, err = at.board.changeOwn(ctx, at.id, Change{Version: details.Version, MergeFailure: &words, failed: true})
		}
		if err == nil {
			return
		}
	}
	b.setFailure(id, words)
}

func (b *Board) setFailure(id, words string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keepFailure(id, words)
	b.rescanAll()
	b.joined.mu.Lock()
	defer b.joined.mu.Unlock()
	b.join(false, nil, map[string]bool{id: true}) // it may be on a branch alone
}

// withFailure returns a change without what it does to a failure that no file has, and what does that.
func (b *Board) withFailure(id string, c Change) (Change, func()) {
	now := b.failure(id)
	switch {
	case c.MergeFailure == nil:
	case *c.MergeFailure == "" && now != "":
		return c, func() {
			b.setFailure(id, "")
			b.mu.Lock()
			defer b.mu.Unlock()
			b.dropped = append(b.dropped[max(0, len(b.dropped)-maxCleared):], [2]string{id, now})
		}
	case *c.MergeFailure != "":
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, dropped := range slices.Backward(b.dropped) {
			if dropped[0] == id && strings.HasSuffix(dropped[1], strings.TrimSpace(*c.MergeFailure)) {
				c.MergeFailure = nil
				return c, func() { b.setFailure(id, dropped[1]) }
			}
		}
	}
	return c, func() {}
}
