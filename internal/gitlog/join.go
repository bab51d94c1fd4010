package gitlog

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/git"
)

// join joins the board with the places in which stories may stand.
func (w *Work) join(ctx context.Context, r repository, before *facts) error {
	f := w.facts
	if w.board.Layout() == domain.LayoutBeads { // its work trees share one database
		return nil
	}
	var places []board.Place
	used := map[string]bool{}
	for _, p := range f.places {
		place := board.Place{Worktree: p.worktree, Branch: p.branch, Head: p.head, Dir: p.dir, State: p.state}
		if p.mergeBase != "" {
			place.Base = func(id string) string { return f.stages.of(p.mergeBase, id) }
			place.Had = func(id, stage string) bool { return p.had[id+"\x00"+stage] }
		}
		if p.worktree == "" {
			place.Only = map[string]bool{}
			for _, id := range p.named {
				if f.stages.of(p.head, id) != f.stages.of(p.mergeBase, id) {
					place.Only[id] = true
				}
			}
			if len(place.Only) == 0 || p.mergeBase == "" {
				continue
			}
			key := p.branch + " " + p.head
			if w.copies[key] == "" {
				var err error
				if w.temp == "" {
					w.temp, w.remove, err = git.TempDir()
				}
				if err == nil {
					w.copies[key], err = r.copyBoard(ctx, w.temp, p.head, w.log.Board.Past().Paths, p.at)
				}
				if err != nil {
					return err
				}
			}
			place.Dir, used[key] = w.copies[key], true
			place.Advanced = before != nil && before.heads[p.branch] != "" && before.heads[p.branch] != p.head &&
				r.Contains(ctx, p.head, before.heads[p.branch])
		}
		places = append(places, place)
	}
	w.pending = append(w.pending, w.board.Join(places)...)
	for key, dir := range w.copies {
		if !used[key] {
			os.RemoveAll(dir)
			delete(w.copies, key)
		}
	}
	return nil
}

// copyBoard copies the board's files of a commit to a new directory in another.
func (r repository) copyBoard(ctx context.Context, in, commit string, paths []string, at time.Time) (string, error) {
	files, err := r.files(ctx, commit, append(slices.Clone(paths), boardConfigs...))
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(in, "branch-*")
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return dir, err
	}
	defer root.Close()
	return dir, r.Blobs(ctx, func(read func(id string) []byte) {
		for name, id := range files {
			if content := read(id); id != "" && content != nil {
				_ = root.MkdirAll(filepath.FromSlash(filepath.Dir(name)), 0o700)
				_ = root.WriteFile(filepath.FromSlash(name), content, 0o600)
				_ = root.Chtimes(filepath.FromSlash(name), at, at)
			}
		}
	})
}

// boardConfigs are files by which layouts know what those of a board mean.
var boardConfigs = strings.Fields(`backlog.config.yml backlog/config.yml .backlog/config.yml openspec/config.yaml
	openspec/schemas openspec/specs .specify .kiro .taskmaster _bmad/bmm/config.yaml`)
