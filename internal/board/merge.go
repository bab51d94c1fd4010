package board

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/git"
)

const (
	// mergeLimit is how long a merge may take in all, checkLimit how long its check may.
	mergeLimit, checkLimit = 45 * time.Minute, 30 * time.Minute
)

// MergeRequest asks to merge what a branch has for a story.
type MergeRequest struct {
	Branch, Head string
	Stage        *string // the story's stage afterwards, nil for the done stage
	Into         string  // the branch that must be checked out, "" for any
}

// MayMerge returns why no merge can be requested, nil if one can.
func (b *Board) MayMerge() error {
	if !b.allowWrites {
		return ErrReadOnly
	}
	if !b.options.AllowMerges {
		return domain.Errorf(domain.Forbidden, "this project server does not allow merges (--allow-merges)")
	}
	return nil
}

// Merge merges a branch into the one that is checked out, with the story in its new stage, and returns the commit. It
// goes on when ctx is cancelled, but not when the board no longer runs. It returns NotFound for an unknown story,
// Invalid for a stage, and Conflict, with what git, a hook or the check says, if there is no merge: the work tree is
// then as it was, and the story has that as its merge failure unless only the work tree is in the way.
func (b *Board) Merge(ctx context.Context, id string, q MergeRequest) (commit string, err error) {
	if err := b.MayMerge(); err != nil {
		return "", err
	}
	if _, err := b.Read(id); err != nil {
		return "", err
	}
	stage, err := b.mergedStage(q.Stage)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mergeLimit)
	defer cancel()
	if running := b.running.Load(); running != nil {
		defer context.AfterFunc(*running, cancel)()
	}
	tree, err := b.checkMerge(ctx, q)
	if err != nil {
		return "", err
	}
	m, err := tree.BeginMerge(ctx, domain.ActorOf(ctx).Who)
	if errors.Is(err, git.ErrMerging) {
		return "", domain.Errorf(domain.Conflict, "another merge of this project is under way")
	}
	if err != nil {
		return "", err
	}
	defer func() {
		if err := m.End(); err != nil {
			b.log.Warn("board: cannot remove a temporary work tree", "error", err)
		}
	}()
	commit, written, err := b.merge(ctx, m, id, stage, q)
	refused, is := errors.AsType[*git.Refused](err)
	switch {
	case ctx.Err() != nil:
		return "", domain.Errorf(domain.Unavailable, "the merge was stopped")
	case errors.Is(err, git.ErrMerged):
		return "", domain.WrapError(domain.Conflict, err, "Already up to date.")
	case is:
		b.fail(ctx, id, refused.Words)
		return "", domain.Errorf(domain.Conflict, "%s", refused.Words)
	case err != nil:
		return "", err
	}
	return commit, b.advance(ctx, m, id, stage, commit, written)
}

// mergedStage returns the stage of a merged story, "" if only its boxes determine it.
func (b *Board) mergedStage(asked *string) (string, error) {
	stages := b.View().Stages
	at := domain.DoneStage(domain.Map(stages, func(s Stage) domain.Stage {
		return domain.Stage{Name: s.Name, Other: s.Other}
	}))
	if asked != nil {
		at = slices.IndexFunc(stages, func(s Stage) bool { return s.Name == *asked })
	}
	switch {
	case at < 0 && asked != nil:
		return "", domain.Errorf(domain.Invalid, "stage: there is no stage %q", limit(*asked))
	case at < 0:
		return "", nil
	case asked != nil && (stages[at].Fixed != "" || stages[at].Other):
		return "", domain.Errorf(domain.Invalid, "stage: %s", cmp.Or(stages[at].Fixed, "is none of the board's own"))
	case stages[at].Fixed != "":
		return "", nil
	}
	return stages[at].Name, nil
}

// checkMerge returns the work tree to merge into. It returns Conflict if nothing can be merged there.
func (b *Board) checkMerge(ctx context.Context, q MergeRequest) (git.Tree, error) {
	tree, found := git.Find(b.dir)
	if !found {
		return tree, domain.Errorf(domain.Conflict, "the board is in no git work tree")
	}
	switch branch := tree.Branch(); {
	case branch == "":
		return tree, domain.Errorf(domain.Conflict, "the project's work tree is on no branch")
	case q.Into != "" && q.Into != branch:
		return tree, domain.Errorf(domain.Conflict, "the project's work tree is on %s, not on %s", branch, limit(q.Into))
	}
	words, err := tree.UnderWay(ctx)
	if err != nil || words != "" {
		return tree, cmp.Or(err, error(domain.Errorf(domain.Conflict, "%s", words)))
	}
	tip, err := git.Open(tree.Dir).Tip(ctx, q.Branch)
	if err == nil && (tip == "" || tip != q.Head) {
		err = domain.Errorf(domain.Conflict, "%s is not the tip of a branch %s", limit(q.Head), limit(q.Branch))
	}
	return tree, err
}

// merge makes the merge, and returns its commit and the files that the story has in it.
func (b *Board) merge(
	ctx context.Context, m *git.Merge, id, stage string, q MergeRequest,
) (commit string, written []string, err error) {
	if err := m.Join(ctx, q.Head, "Merge branch '"+q.Branch+"' for "+id); err != nil {
		return "", nil, err
	}
	if stage != "" {
		if written, err = b.writeMerged(ctx, m, id, stage); err != nil {
			return "", nil, err
		}
		if err := m.Amend(ctx, written...); err != nil {
			return "", nil, err
		}
	}
	if commit, err = m.Commit(ctx); err == nil {
		err = m.Try(ctx, commit, b.ownOf(written)...)
	}
	if err = mergeConflict(err); err == nil && b.options.MergeCheck != "" {
		err = m.Run(ctx, b.options.MergeCheck, checkLimit)
	}
	return commit, written, err
}

// ownOf returns the files of a merged story that are its alone.
func (b *Board) ownOf(written []string) []string {
	if b.Layout() == domain.LayoutStages {
		return written
	}
	return written[:max(0, len(written)-1)] // the last is the one it was written to
}

// mergeConflict returns Conflict for a refusal even though the merge itself was possible.
func mergeConflict(err error) error {
	if refused, is := errors.AsType[*git.Refused](err); is {
		return domain.Errorf(domain.Conflict, "%s", refused.Words)
	}
	return err
}

// advance moves the project's work tree on to a merge.
func (b *Board) advance(ctx context.Context, m *git.Merge, id, stage, commit string, paths []string) error {
	b.mu.Lock()
	err := mergeConflict(m.Advance(ctx, commit, b.ownOf(paths)...))
	if err == nil {
		b.keepFailure(id, "")
	}
	_, _ = b.scan(nil, false) // if it fails, the view says so
	b.mu.Unlock()
	if err != nil {
		return err
	}
	if b.options.Refresh != nil {
		b.options.Refresh(ctx)
	}
	own := b.idIn(b, id)
	if details, err := b.readOwn(own); err == nil && len(paths) == 0 && stage != "" && details.Stage != stage {
		// git has none of it
		if _, err := b.changeOwn(ctx, own, Change{Version: details.Version, Stage: &stage}); err != nil {
			b.log.Warn("board: cannot move a story that was merged", "error", err)
		}
	}
	return nil
}
