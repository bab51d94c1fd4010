package gitlog

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/git"
	"switchyard/internal/wire"
)

const (
	// maxReaders is how many callers can read changes at a time, readTime how long git may take for each.
	maxReaders, readTime = 2, 10 * time.Second
	// maxListed is how many commits of a place are listed, maxUntracked how many files, maxUntrackedNames their size.
	maxListed, maxUntracked, maxUntrackedNames = 100, 200, 64 << 10
)

var (
	hashForm = regexp.MustCompile(`^[0-9A-Fa-f]{4,64}$`)

	errNoPlace = domain.Errorf(domain.NotFound, "the story has no such work tree or branch")
)

// Changes returns what a place of a story (by default the first one) has beyond the base. It returns NotFound for a
// place that is not the story's, and for a commit that is not an ancestor of its head.
func (w *Work) Changes(ctx context.Context, story string, q domain.ChangesQuery) (*wire.Changes, error) {
	select {
	case w.readers <- struct{}{}:
		defer func() { <-w.readers }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readTime, git.ErrCutOff)
	defer cancel()
	c, err := w.changes(ctx, story, q)
	switch {
	case git.IsNoRepository(err):
		err = errNoPlace
	case errors.Is(err, git.ErrCutOff):
		err = domain.WrapError(domain.Unavailable, err, "git takes too long to say what has changed")
	}
	return c, err
}

func (w *Work) changes(ctx context.Context, story string, q domain.ChangesQuery) (*wire.Changes, error) {
	own := git.Open(w.log.Dir)
	base, err := own.Head(ctx)
	if err != nil {
		return nil, err
	}
	if q.Head != "" {
		if !hashForm.MatchString(q.Head) || !own.Contains(ctx, base, q.Head) {
			return nil, errNoPlace
		}
		return wire.NewChanges(base, q.Head, q.Head), nil
	}
	place, r, head, err := w.find(ctx, story, q.Branch, q.Worktree)
	if err != nil {
		return nil, err
	}
	rel, err := r.relateOne(ctx, base, head)
	if err != nil {
		return nil, err
	}
	c := wire.NewChanges(base, head, rel.mergeBase)
	c.Branch, c.Worktree, c.Conflicts = place.Branch, place.Worktree, place.Conflicts
	c.Ahead, c.Behind = rel.ahead, rel.behind
	if now := w.Base(); head != place.Head || now == nil || now.Commit != base {
		c.Conflicts = nil
		if merges, _ := own.Merges(ctx, r.tree, base, []string{head}); len(merges) > 0 {
			c.Conflicts = merges[0].Conflicts
		}
	}
	from, without := rel.mergeBase, []string{"^" + base}
	if q.Since != "" {
		if from, err = r.ancestor(ctx, q.Since, head); err != nil {
			return nil, err
		}
		without = append(without, "^"+from)
	}
	if c.Commits, err = r.list(ctx, append(without, head)); err != nil {
		return nil, err
	}
	if from != "" {
		d, err := r.diff(ctx, q.Path, "--ignore-submodules=dirty", from, head)
		if err != nil {
			return nil, err
		}
		c.Files, c.More, c.Diff, c.Cut = append(c.Files, d.files...), d.more, d.text.String(), d.cut
	}
	if place.Worktree == nil {
		return c, nil
	}
	if r.Repository, err = r.WithoutDrivers(ctx); err != nil {
		return nil, err
	}
	d, err := r.diff(ctx, q.Path, head)
	if err != nil {
		return nil, err
	}
	c.Uncommitted = wire.Uncommitted{
		Files: append(c.Uncommitted.Files, d.files...), Diff: d.text.String(), Cut: d.cut || d.more > 0,
	}
	c.Untracked, err = r.untracked(ctx)
	return c, err
}

// find returns a place of a story with its repository and current head.
func (w *Work) find(
	ctx context.Context, story, branch, worktree string,
) (place wire.Work, r repository, head string, err error) {
	places := w.now.Load().stories[story]
	i := slices.IndexFunc(places, func(p wire.Work) bool {
		return (branch == "" || wire.Text(p.Branch) == branch) && (worktree == "" || wire.Text(p.Worktree) == worktree)
	})
	tree, found := git.Find(w.log.Dir)
	if i < 0 || !found {
		return place, r, "", errNoPlace
	}
	place, r = places[i], repository{git.Open(tree.Dir), tree}
	if place.Worktree == nil {
		head, err = r.Tip(ctx, *place.Branch)
	} else {
		linked, is := tree.IsLinked(*place.Worktree)
		if !is {
			return place, r, "", errNoPlace
		}
		place.Branch = wire.OrNull(linked.Branch())
		r = repository{git.Open(linked.Dir), linked}
		head, err = r.Head(ctx)
	}
	if err == nil && head == "" {
		err = errNoPlace
	}
	return place, r, head, err
}

// ancestor returns a commit that is an ancestor of head.
func (r repository) ancestor(ctx context.Context, commit, head string) (string, error) {
	if hashForm.MatchString(commit) {
		hash, err := r.Output(ctx, "rev-parse", "--verify", "--quiet", commit+"^{commit}")
		if err == nil && r.Contains(ctx, head, hash) {
			return hash, nil
		}
	}
	return "", domain.Errorf(domain.NotFound, "since: no commit that the head of the work tree or branch follows")
}

// list returns the newest commits of revisions.
func (r repository) list(ctx context.Context, revisions []string) (commits []wire.ChangesCommit, err error) {
	commits = []wire.ChangesCommit{}
	err = r.Records(ctx, strings.NewReader(strings.Join(revisions, "\n")+"\n"), 0, func(record []byte) error {
		if c, _ := parseRecord(record); c != nil {
			commits = append(commits, wire.ChangesCommit{Hash: c.Hash, Author: c.Author, AtMS: c.AtMS, Subject: c.Subject})
		}
		return nil
	}, "log", "-z", "--stdin", "--max-count="+strconv.Itoa(maxListed), recordFormat)
	return commits, err
}

// untracked returns the first untracked files of a work tree.
func (r repository) untracked(ctx context.Context) (paths []string, err error) {
	paths = []string{}
	size := 0
	err = r.Records(ctx, nil, 0, func(path []byte) error {
		if path[len(path)-1] == '/' { // a repository, or another work tree
			return nil
		}
		shown := strings.ToValidUTF8(string(path), "\ufffd")
		if size += encodedSize(shown); size > maxUntrackedNames || len(paths) == maxUntracked {
			return git.ErrEnough
		}
		paths = append(paths, shown)
		return nil
	}, "ls-files", "-z", "--others", "--exclude-standard")
	return paths, err
}
