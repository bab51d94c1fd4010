package board

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/git"
)

// commit is the commit that a write becomes.
type commit struct {
	dir    string
	before map[string]*storyFile // the files that may be written, by path
}

// beginCommit returns the commit that writing the files is to become, nil for none. It returns Conflict, with git's
// message, if git cannot commit: then nothing may be written.
func (b *Board) beginCommit(ctx context.Context, names []string) (*commit, error) {
	tree, inTree := git.Find(b.dir)
	if !b.commitMoves || !inTree {
		return nil, nil
	}
	repository := git.Open(b.dir)
	tracks, err := repository.Tracks(ctx, b.Past().Paths...)
	if err != nil || !tracks {
		return nil, noCommit(err)
	}
	words, err := tree.UnderWay(ctx)
	if err == nil && words != "" {
		err = domain.Errorf(domain.Conflict, "git cannot commit the change: %s", words)
	}
	filtered := ""
	if err == nil && len(names) > 0 {
		filtered, err = repository.Filtered(ctx, names...)
	}
	if filtered != "" {
		err = domain.Errorf(domain.Conflict, "git cannot commit the change: %s has a filter, which is not run", filtered)
	}
	if err != nil {
		return nil, noCommit(err)
	}
	c := &commit{b.dir, map[string]*storyFile{}}
	files, err := openTree(b.dir)
	if err != nil {
		return nil, err
	}
	defer files.close()
	for _, name := range names {
		if c.before[name], err = files.file(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return c, nil
}

func (b *Board) changeFiles(ctx context.Context, story Story, stage string, c Change) (changed fileSet, err error) {
	names, err := b.layout.writes(story, c)
	if err != nil {
		return nil, err
	}
	commit, err := b.beginCommit(ctx, names)
	if err != nil {
		return nil, err
	}
	if changed, err = b.layout.change(story, stage, c); err != nil {
		return nil, err
	}
	return changed, commit.end(ctx, story.ID, c.done(story, stage), names...)
}

func noCommit(err error) error {
	if err == nil || errors.As(err, new(*domain.Error)) {
		return err
	}
	return domain.WrapError(domain.Conflict, err, "git cannot commit the change: "+err.Error())
}

// end commits the files after something was done to a story, "" for nothing, with the user who did it as the author. If
// git fails, what was written is undone.
func (c *commit) end(ctx context.Context, id, done string, names ...string) error {
	if c == nil || done == "" || len(names) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // it is already written
	err := git.Open(c.dir).Commit(ctx, git.Commit{
		Author: domain.ActorOf(ctx).Who, Subject: id + ": " + done, Paths: names,
	})
	if err != nil {
		return noCommit(errors.Join(err, c.undo(names)))
	}
	return nil
}

// undo restores the files' names and content.
func (c *commit) undo(names []string) error {
	files, err := openTree(c.dir)
	if err != nil {
		return err
	}
	defer files.close()
	isGone := func(name string) bool { return c.before[name] != nil && !files.Has(name) }
	for _, name := range names {
		if c.before[name] != nil || !files.Has(name) {
			continue
		}
		if gone := slices.IndexFunc(names, isGone); gone >= 0 {
			err = errors.Join(err, files.root.Rename(name, names[gone]))
		} else {
			err = errors.Join(err, files.root.Remove(name))
		}
	}
	for name, was := range c.before {
		if now, _ := files.file(name); was != nil && now != nil && !bytes.Equal(now.raw, was.raw) {
			err = errors.Join(err, files.rewrite(name, func([]byte) ([]byte, error) { return was.content, nil }))
		}
	}
	return err
}

// done describes the change for a commit's subject, "" if it does nothing.
func (c Change) done(story Story, stage string) string {
	var parts []string
	add := func(is bool, text string) {
		if is {
			parts = append(parts, text)
		}
	}
	if c.Stage != nil {
		add(*c.Stage != stage, stage+" → "+*c.Stage)
	}
	if c.Blocked != nil {
		reason := domain.CutReason(strings.TrimSpace(*c.Blocked))
		add(reason != "" && reason != story.Blocked, "blocked")
		add(reason == "" && story.Blocked != "", "unblocked")
	}
	if c.MergeFailure != nil {
		add(*c.MergeFailure == "" && story.MergeFailure != "", "merge failure cleared")
		add(*c.MergeFailure != "" && c.failed, "merge failed")
		add(*c.MergeFailure != "" && !c.failed, "merge failure restored")
	}
	if c.Task != nil {
		add(c.Task.Done, "box ticked")
		add(!c.Task.Done, "box cleared")
	}
	return strings.Join(parts, ", ")
}

func (s *scanner) writes(story Story, c Change) (names []string, err error) {
	for _, stage := range s.stages { // it may have been moved by hand
		names = append(names, stage.name+"/"+story.ID+".md")
	}
	if c.Stage != nil && s.stage(*c.Stage) == nil { // its directory may be new
		names = append(names, path.Join(*c.Stage, story.ID+".md"))
	}
	return names, nil
}

func (s *scanner) own(id string) ([]string, error) { return s.writes(Story{ID: id}, Change{}) }

func (s *units) own(id string) ([]string, error) {
	tree, err := openTree(s.dir)
	if err != nil {
		return nil, err
	}
	defer tree.close()
	e, _, err := s.find(tree, unitCache{}, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || len(s.index.Load().places[id].unit.stories) > 1 {
		return nil, err
	}
	return []string{e.record().path}, nil
}

func (s *units) writes(story Story, c Change) ([]string, error) {
	if s.index.Load().rules.source != nil || c.Stage == nil && c.Task == nil {
		return nil, nil
	}
	tree, err := openTree(s.dir)
	if err != nil {
		return nil, err
	}
	defer tree.close()
	e, _, err := s.find(tree, unitCache{}, story.ID)
	if err != nil {
		return nil, err
	}
	r := e.record()
	switch {
	case c.Task == nil:
		return []string{cmp.Or(r.status, r.path)}, nil
	case slices.ContainsFunc(r.tasks, func(t Task) bool { return t.Path == c.Task.Path }):
		return []string{cmp.Or(c.Task.Path, r.path)}, nil
	}
	return []string{r.path}, nil
}
