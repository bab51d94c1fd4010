package board

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"

	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/files"
	"switchyard/internal/git"
)

// writeMerged writes the story's stage, and uncommitted changes to its own file, into the temporary work tree. It
// returns the files that the story may have there, none if git has none of the board.
func (b *Board) writeMerged(ctx context.Context, m *git.Merge, id, stage string) (paths []string, err error) {
	tree, _ := git.Find(b.dir)
	below, err := filepath.Rel(tree.Dir, files.Resolved(b.dir))
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(files.Resolved(m.Dir), below)
	tracks, err := git.Open(b.dir).Tracks(ctx, b.Past().Paths...)
	if err != nil || !tracks || b.Layout() == domain.LayoutBeads {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil || files.Resolved(dir) != dir {
		return nil, cmp.Or(err, error(domain.Errorf(domain.Conflict, "the board of the branch is elsewhere")))
	}
	if b.Layout() == domain.LayoutStages { // git keeps no empty directories
		_ = os.Mkdir(filepath.Join(dir, stage), 0o777)
	}
	merged, err := Open(Options{
		Dir: dir, Layout: b.kind, AllowWrites: true, Record: func(...feed.Notification) {},
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	own, id := b.idIn(b, id), b.idIn(merged, id)
	b.mu.Lock()
	names, err := b.layout.own(own)
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	prefix := path.Clean(filepath.ToSlash(below))
	for _, name := range names {
		paths = append(paths, path.Join(prefix, name))
	}
	if err := b.mergeUncommitted(ctx, m, merged, own, id, stage, prefix, names); err != nil {
		return nil, err
	}
	details, err := merged.Read(id)
	if domain.CodeOf(err) == domain.NotFound { // it is on another branch
		return paths, nil
	}
	var written []string
	if err == nil {
		c := Change{Version: details.Version, Stage: &stage, MergeFailure: new(string)}
		if written, err = merged.layout.writes(details.Story, c); err == nil {
			details, err = merged.Change(ctx, id, c)
		}
	}
	if err != nil {
		return nil, err
	}
	for _, name := range written {
		paths = append(paths, path.Join(prefix, name))
	}
	if b.Layout() == domain.LayoutStages {
		for _, name := range names { // it may have arrived in several stages
			if name != details.Path {
				_ = os.Remove(filepath.Join(dir, filepath.FromSlash(name)))
			}
		}
	}
	return paths, nil
}

// mergeUncommitted merges the uncommitted changes to the story's own file with the branch's.
func (b *Board) mergeUncommitted(
	ctx context.Context, m *git.Merge, merged *Board, ownID, id, stage, prefix string, names []string,
) error {
	own, err := b.readOwn(ownID)
	if err != nil || !slices.Contains(names, own.Path) {
		return nil // there is none
	}
	read := func(dir, name string) []byte {
		tree, err := openTree(dir)
		if err != nil {
			return nil
		}
		defer tree.close()
		if file, err := tree.file(name); err == nil {
			return file.raw
		}
		return nil
	}
	ours := read(b.dir, own.Path)
	var base []byte
	err = fs.ErrNotExist
	for _, name := range append([]string{own.Path}, names...) {
		if errors.Is(err, fs.ErrNotExist) {
			base, err = m.BaseFile(ctx, path.Join(prefix, name))
		}
	}
	there, missing := merged.readOwn(id)
	switch {
	case errors.Is(err, fs.ErrNotExist) && missing != nil && b.Layout() == domain.LayoutStages: // never committed
		name := path.Join(stage, id+".md")
		err = os.WriteFile(filepath.Join(merged.dir, filepath.FromSlash(name)), ours, 0o666)
		merged.catchUp()
		return err
	case errors.Is(err, fs.ErrNotExist) || missing != nil || err == nil && bytes.Equal(base, ours):
		return nil
	case err != nil:
		return err
	}
	text, err := m.Blend(ctx, read(merged.dir, there.Path), base, ours)
	if err != nil {
		return err
	}
	tree, err := openTree(merged.dir)
	if err != nil {
		return err
	}
	defer tree.close()
	err = tree.rewrite(there.Path, func([]byte) ([]byte, error) { return text, nil })
	merged.catchUp()
	return err
}
