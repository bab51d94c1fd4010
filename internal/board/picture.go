package board

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

var errNoPicture = domain.Errorf(domain.NotFound, "there is no such picture on the board")

// Picture reads a file that a story's text names, relative to the story's own. It must be a regular file of the board,
// not reached through a symbolic link. It returns NotFound if there is none, or if it is over domain.MaxPicture.
func (b *Board) Picture(ctx context.Context, id, name string) ([]byte, error) {
	if at := b.standsIn(id); at.board != nil {
		return at.board.Picture(ctx, at.id, name)
	}
	details, err := b.Read(id)
	if err != nil {
		return nil, err
	}
	select {
	case b.readers <- struct{}{}:
		defer func() { <-b.readers }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	file := path.Join(path.Dir(details.Path), name)
	if !filepath.IsLocal(filepath.FromSlash(file)) || strings.ContainsAny(name, "\\\x00") || path.IsAbs(name) ||
		!b.has(file) {
		return nil, errNoPicture
	}
	tree, err := openTree(b.dir)
	if err != nil {
		return nil, Unavailable(err)
	}
	defer tree.close()
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if info, err := tree.root.Lstat(dir); err != nil || !info.IsDir() {
			return nil, errNoPicture
		}
	}
	dir, err := tree.open(path.Dir(file))
	if err != nil {
		return nil, errNoPicture
	}
	picture, err := readRegular(dir, path.Base(file), domain.MaxPicture)
	if err != nil || picture.identity.size > domain.MaxPicture {
		return nil, errNoPicture
	}
	return picture.raw, nil
}

// has reports whether a file is on the board: in the board's top directory, unless that is a whole repository.
func (b *Board) has(file string) bool {
	places := b.Past().Paths
	if top := b.top(); top != "." {
		places = []string{top}
	}
	return slices.ContainsFunc(places, func(dir string) bool { return dir == "." || strings.HasPrefix(file, dir+"/") })
}
