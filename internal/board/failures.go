package board

import (
	"context"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/git"
)

// openMerges reads why merges failed, and removes what killed merges left behind.
func (b *Board) openMerges(o Options) {
	var err error
	b.kept, err = openNotes(o.State, o.Dir, o.Layout+"\x00merges")
	b.report("read why merges failed", err)
	list := b.kept.list
	b.failures.Store(&list)
	b.tracker.failure = b.failure
	if tree, inTree := git.Find(b.dir); inTree && o.AllowMerges {
		tree.Sweep()
	}
}

// failure returns why the last merge of a story failed if its files do not say so, "" for no such failure.
func (b *Board) failure(id string) string {
	if kept := b.failures.Load(); kept != nil {
		return (*kept)[id]
	}
	return ""
}

// keepFailure keeps such a failure, "" for none, and drops those of stories that are gone. The caller holds the board's
// mutex.
func (b *Board) keepFailure(id, words string) {
	if b.failure(id) == words {
		return
	}
	view := b.View()
	next := b.kept.with(id, words, func(other string) bool { _, _, found := view.Find(other); return found })
	b.kept.list = next
	b.failures.Store(&next)
	if b.kept.path != "" {
		b.report("keep why a merge failed", b.kept.write(next))
	}
}

// fail records that a story's merge failed: in its file if it stands in a linked work tree, otherwise in the state
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
	b.join(false, nil, map[string]bool{id: true}) // it may be only on a branch
}

// maxCleared is how many cleared merge failures can be restored.
const maxCleared = 100

// clearedFailure is a merge failure that was cleared.
type clearedFailure struct {
	words string
	kept  bool // by the board, since no file had it
}

var errNotCleared = domain.Errorf(domain.Invalid,
	"merge_failure: can only be null, or the end of what was cleared last")

// withFailure returns a change to a story with the whole failure that it restores, and without its change to a failure
// that is in no file, which the returned function makes afterwards.
func (b *Board) withFailure(id string, c Change, read func() (*Details, error)) (_ Change, after func(), err error) {
	after = func() {}
	if c.MergeFailure == nil {
		return c, after, nil
	}
	if *c.MergeFailure == "" {
		now := clearedFailure{b.failure(id), true}
		if details, err := read(); now.words == "" && err == nil {
			now = clearedFailure{details.MergeFailure, false}
		}
		return c, func() { b.keepCleared(id, now) }, nil
	}
	b.mu.Lock()
	cleared := b.cleared[id]
	b.mu.Unlock()
	switch {
	case cleared.words == "" || !strings.HasSuffix(cleared.words, strings.TrimSpace(*c.MergeFailure)):
		return c, after, errNotCleared
	case cleared.kept:
		c.MergeFailure = nil
		return c, func() { b.setFailure(id, cleared.words) }, nil
	}
	c.MergeFailure = &cleared.words
	return c, after, nil
}

// keepCleared remembers a failure that a story no longer has.
func (b *Board) keepCleared(id string, failure clearedFailure) {
	if failure.words == "" {
		return
	}
	if failure.kept {
		b.setFailure(id, "")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cleared == nil || len(b.cleared) >= maxCleared {
		b.cleared = map[string]clearedFailure{}
	}
	b.cleared[id] = failure
}
