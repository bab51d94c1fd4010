package gitlog

import (
	"context"
	"errors"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"switchyard/internal/board"
)

// isNoRepository reports whether git failed because there is no repository. It goes by the message: the exit status,
// 128, has other causes as well.
func isNoRepository(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && strings.Contains(err.Error(), "not a git repository")
}

// update reads new commits up to HEAD, and searches for new stories of view.
func (l *Log) update(ctx context.Context, view *board.View) error {
	if l.gitDir == "" {
		if err := l.open(ctx); err != nil || l.gitDir == "" {
			return err
		}
	}
	head, err := l.repository.head(ctx)
	if err != nil {
		l.close()
		return err
	}
	next := map[string][]*Commit{}
	switch {
	case head == "" || l.head == "":
		l.searched = map[string]bool{}
	case head == l.head:
		next = maps.Clone(l.commits)
	default:
		if next, err = l.advance(ctx, head); err != nil { // the old HEAD may no longer exist: start over
			next, l.searched = map[string][]*Commit{}, map[string]bool{}
		}
	}
	l.head = head
	return l.search(ctx, view, next)
}

// add searches for the stories that are new in view. HEAD has not changed.
func (l *Log) add(ctx context.Context, view *board.View) error {
	return l.search(ctx, view, maps.Clone(l.commits))
}

func idsOf(view *board.View) []string {
	var ids []string
	for _, stage := range view.Stages {
		for i := range stage.Stories {
			ids = append(ids, stage.Stories[i].ID)
		}
	}
	return ids
}

// advance returns the commits after HEAD has moved to head: without those no longer in its history, and with the new
// ones.
func (l *Log) advance(ctx context.Context, head string) (map[string][]*Commit, error) {
	known := slices.Collect(maps.Keys(l.searched))
	found, err := l.repository.history(ctx, newWords(known), head, "^"+l.head)
	if err != nil {
		return nil, err
	}
	if err := l.count(ctx, found); err != nil {
		return nil, err
	}
	gone := map[string]bool{}
	contained, err := l.repository.contains(ctx, head, l.head)
	if err == nil && !contained {
		gone, err = l.repository.hashes(ctx, l.head, "^"+head)
	}
	if err != nil {
		return nil, err
	}
	next := maps.Clone(l.commits)
	if len(gone) > 0 {
		l.drop(next, gone)
	}
	for id, list := range found {
		next[id] = newestFirst(append(list, next[id]...))
	}
	return next, nil
}

// drop removes the commits in gone from next. A story that may have older commits is searched for again.
func (l *Log) drop(next map[string][]*Commit, gone map[string]bool) {
	for id, list := range next {
		kept := slices.DeleteFunc(slices.Clone(list), func(c *Commit) bool { return gone[c.Hash] })
		if len(kept) == len(list) {
			continue
		}
		if len(list) == perStory {
			delete(l.searched, id)
			delete(next, id)
			continue
		}
		next[id] = kept
	}
}

// search reads the whole history for the stories of view that have not been searched for, adds the commits found to
// next, and publishes it. Commits of stories that have left the board are kept, up to a limit, in case they come back.
func (l *Log) search(ctx context.Context, view *board.View, next map[string][]*Commit) error {
	ids := idsOf(view)
	if len(l.searched) > 2*len(ids)+1000 {
		next, l.searched = map[string][]*Commit{}, map[string]bool{}
	}
	missing := slices.DeleteFunc(ids, func(id string) bool { return l.searched[id] })
	if len(missing) > 0 && l.head != "" {
		found, err := l.repository.history(ctx, newWords(missing), l.head)
		if err == nil {
			err = l.count(ctx, found)
		}
		if err != nil {
			return err
		}
		for id, list := range found {
			next[id] = newestFirst(list)
		}
		for _, id := range missing {
			l.searched[id] = true
		}
	}
	l.view = view
	l.publish(next)
	return nil
}

func newestFirst(list []*Commit) []*Commit {
	slices.SortStableFunc(list, func(a, b *Commit) int { return b.At.Compare(a.At) })
	return list[:min(len(list), perStory)]
}

// count fills in what the commits in found change, each commit once.
func (l *Log) count(ctx context.Context, found map[string][]*Commit) error {
	unique := map[*Commit]bool{}
	for _, list := range found {
		for _, commit := range list {
			unique[commit] = true
		}
	}
	if len(unique) == 0 {
		return nil
	}
	return l.repository.count(ctx, slices.Collect(maps.Keys(unique)))
}
