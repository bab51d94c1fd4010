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
	var copies []boardCopy
	used := map[string]bool{}
	for _, p := range f.places {
		place := board.Place{
			Worktree: p.worktree, Branch: p.branch, Head: p.head, Dir: p.dir, State: p.state, Began: p.mergeBase,
		}
		if p.mergeBase != "" {
			place.Base = func(id string) string { return f.stages.of(p.mergeBase, id) }
			place.Had = func(id, stage string) bool { return p.had[id+"\x00"+stage] }
		}
		if p.worktree == "" {
			place.Only = map[string]bool{}
			for _, id := range p.named {
				if f.stages.differ(p.head, p.mergeBase, id) {
					place.Only[id] = true
				}
			}
			if len(place.Only) == 0 || p.mergeBase == "" {
				continue
			}
			key := p.branch + " " + p.head
			if w.copies[key] == "" {
				c, err := w.newCopy(ctx, r, p, place.Only)
				if err != nil {
					return err
				}
				w.copies[key], copies = c.dir, append(copies, c)
			}
			place.Dir, used[key] = w.copies[key], true
			place.Advanced = before != nil && before.heads[p.branch] != "" && before.heads[p.branch] != p.head &&
				r.Contains(ctx, p.head, before.heads[p.branch])
		}
		places = append(places, place)
	}
	if err := r.copyBoards(ctx, copies); err != nil {
		return err
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

// boardCopy is a directory with a commit's board files: blobs by path.
type boardCopy struct {
	dir   string
	files map[string]string
	at    time.Time
}

// newCopy makes the directory for a branch, and lists the files that its stories need.
func (w *Work) newCopy(ctx context.Context, r repository, p *place, stories map[string]bool) (c boardCopy, err error) {
	c.at = p.at
	if w.board.Layout() == domain.LayoutStages { // each story is one file
		c.files = map[string]string{}
		for id := range stories {
			path := w.facts.stages.of(p.head, id) + "/" + id + ".md"
			c.files[path] = w.facts.stages.file(p.head, path)
		}
	} else {
		paths := append(slices.Clone(w.log.Board.Past().Paths), boardConfigs...)
		if c.files, err = r.files(ctx, p.head, paths); err != nil {
			return c, err
		}
	}
	if w.temp == "" {
		if w.temp, w.remove, err = git.TempDir(); err != nil {
			return c, err
		}
	}
	c.dir, err = os.MkdirTemp(w.temp, "branch-*")
	return c, err
}

// copyBoards writes the files.
func (r repository) copyBoards(ctx context.Context, copies []boardCopy) error {
	if len(copies) == 0 {
		return nil
	}
	return r.Blobs(ctx, func(read func(id string) []byte) {
		for _, c := range copies {
			root, err := os.OpenRoot(c.dir)
			if err != nil {
				continue
			}
			for name, id := range c.files {
				if id == "" {
					continue
				}
				if content := read(id); content != nil {
					_ = root.MkdirAll(filepath.FromSlash(filepath.Dir(name)), 0o700)
					_ = root.WriteFile(filepath.FromSlash(name), content, 0o600)
					_ = root.Chtimes(filepath.FromSlash(name), c.at, c.at)
				}
			}
			root.Close()
		}
	})
}

// boardConfigs are files that tell layouts how to read a board.
var boardConfigs = strings.Fields(`backlog.config.yml backlog/config.yml .backlog/config.yml openspec/config.yaml
	openspec/schemas openspec/specs .specify .kiro .taskmaster _bmad/bmm/config.yaml`)
