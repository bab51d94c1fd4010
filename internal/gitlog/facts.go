package gitlog

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/files"
	"switchyard/internal/git"
	"switchyard/internal/wire"
)

// facts are what git says of a repository's places.
type facts struct {
	signature string
	base      git.Worktree
	baseAt    time.Time
	baseTree  string
	paths     []string // of the work trees
	places    []*place
	heads     map[string]string // by branch
	graph     *graph
	stages    *stages
	ids       []string
}

// place is a work tree with its branch, or a branch that no work tree has.
type place struct {
	worktree, branch, head string
	dir, state             string // as of board.Place
	tree                   git.Tree
	hasBoard               bool
	relation
	at      time.Time
	author  string
	numbers numbers
	carries []string    // commits of which it has all but moves of ours
	merge   *git.Merged // nil where git cannot say
	named   []string    // stories, like commits
	commits []string
	had     map[string]bool   // stages that stories have been in since on the base
	own     map[string]string // the commits that were made in it, as its reflog says
	clashed time.Time         // since when it conflicts with the base
}

type numbers struct{ files, added, removed int }

func (p *place) key() string {
	if p.worktree != "" {
		return p.worktree
	}
	return p.branch
}

// isMerged reports whether the base contains what the place had, or whether merging it would change nothing of the
// base's tree. linked is whether it was a story's while it had commits of its own.
func (p *place) isMerged(baseTree string, linked bool) bool {
	if p.ahead == 0 {
		return (linked || len(p.own) > 0) && p.mergeBase == p.head
	}
	return p.merge != nil && len(p.merge.Conflicts) == 0 && p.merge.Tree == baseTree
}

// links returns the place's only story, by its links but for commits; none if there are several.
func (p *place) links(links map[string]string) (list []domain.PlaceLink) {
	for id, link := range links {
		if link != "commit" {
			list = append(list, domain.PlaceLink{Branch: p.branch, Worktree: p.worktree, StoryID: id})
		}
	}
	if len(list) != 1 {
		return nil
	}
	return list
}

func (p *place) work(s status) wire.Work {
	n := p.numbers
	if s.dirty && s.of == p.mergeBase {
		n = s.numbers
	}
	w := wire.Work{
		Branch: wire.OrNull(p.branch), Worktree: wire.OrNull(p.worktree), Head: p.head, AtMS: p.at.UnixMilli(),
		Author: p.author, Ahead: p.ahead, Behind: p.behind, Files: n.files, Added: n.added, Removed: n.removed,
		Uncommitted: s.count, Carries: p.carries,
	}
	if p.merge != nil {
		w.Conflicts = append(wire.PathList{}, p.merge.Conflicts...)
		if len(w.Conflicts) > 0 {
			w.ClashMS = p.clashed.UnixMilli()
		}
	}
	return w
}

// look finds the places, and says by a signature whether anything is to be read anew. It returns nil where HEAD has no
// commit.
func (w *Work) look(ctx context.Context, r repository) (*facts, error) {
	all, err := r.Worktrees(ctx)
	if err != nil {
		return nil, err
	}
	f := &facts{heads: map[string]string{}, paths: []string{}}
	taken := map[string]bool{}
	var trees []*place
	below, err := filepath.Rel(r.tree.Dir, files.Resolved(w.log.Dir))
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		taken[t.Branch] = true
		linked, is := r.tree.IsLinked(t.Path)
		switch {
		case t.Bare:
		case !is:
			if !w.missing[t.Path] {
				w.missing[t.Path] = true
				w.log.Log.Warn("gitlog: a work tree is missing", "path", t.Path)
			}
		case linked.Dir == r.tree.Dir:
			f.base = t
			f.paths = append(f.paths, t.Path)
		case w.withTrees && t.Head != "" && strings.Trim(t.Head, "0") != "":
			trees = append(trees, &place{
				worktree: t.Path, branch: t.Branch, head: t.Head, tree: linked, dir: filepath.Join(linked.Dir, below),
				state: linked.HeadState(), own: linked.OwnCommits(),
			})
		}
	}
	slices.SortStableFunc(trees, func(a, b *place) int { return b.tree.Newest().Compare(a.tree.Newest()) })
	f.places = trees[:min(len(trees), maxTrees)]
	for _, p := range f.places {
		f.paths = append(f.paths, p.worktree)
	}
	if f.base.Head, err = r.Head(ctx); err != nil || f.base.Head == "" {
		return nil, err
	}
	branches, err := r.Branches(ctx, time.Now().AddDate(0, 0, -branchDays), maxBranches)
	if err != nil {
		return nil, err
	}
	for _, b := range branches {
		f.heads[b.Name] = b.Head
		if !taken[b.Name] || !w.withTrees && b.Name != f.base.Branch {
			f.places = append(f.places, &place{branch: b.Name, head: b.Head})
		}
	}
	w.sign(f)
	return f, nil
}

// sign sets the signature of what git and the board say, and the stories of the board.
func (w *Work) sign(f *facts) {
	var signature strings.Builder
	signature.WriteString(f.base.Head + f.base.Branch + w.log.Board.Past().Config + w.log.Moves().ID)
	for _, p := range f.places {
		signature.WriteString("\x00" + p.worktree + "\x00" + p.branch + "\x00" + p.head + p.state)
	}
	for _, stage := range w.log.Board.View().Stages {
		for i := range stage.Stories {
			f.ids = append(f.ids, stage.Stories[i].ID)
		}
	}
	slices.Sort(f.ids)
	signature.WriteString("\x00" + strings.Join(f.ids, "\x00"))
	f.signature = signature.String()
}

// read fills in what git says of places.
func (w *Work) read(ctx context.Context, r repository, f *facts) error {
	var heads []string
	for _, p := range f.places {
		heads = append(heads, p.head)
	}
	slices.Sort(heads)
	heads = slices.Compact(heads)
	names := newNamer(f.ids)
	var err error
	if f.graph, err = r.graph(ctx, f.base.Head, heads, names); err != nil {
		return err
	}
	relations, err := r.relate(ctx, f.graph, heads)
	if err != nil {
		return err
	}
	f.places = slices.DeleteFunc(f.places, func(p *place) bool { // a branch that the base contains
		p.relation = relations[p.head]
		return p.worktree == "" && p.ahead == 0
	})
	w.graphCommits(ctx, r, f)
	commits := map[string]bool{}
	for _, p := range f.places {
		p.named = names.inBranch(p.branch)
		if info, err := os.Stat(p.dir); p.worktree != "" && err == nil && info.IsDir() {
			p.hasBoard = true
		}
		if p.ahead == 0 { // once it is merged, nothing else says whose it was
			for _, subject := range p.own {
				p.commits = append(p.commits, names.inMessage([]byte(subject))...)
			}
			for _, m := range w.log.Moves().List {
				if _, made := p.own[m.Commit]; made {
					p.commits = append(p.commits, m.StoryID)
				}
			}
		}
		chain, _ := f.graph.walk(p.head)
		for _, commit := range chain {
			p.commits = append(p.commits, f.graph.named[commit]...)
		}
		for _, commit := range []string{p.mergeBase, p.head} {
			if commit != "" && commit != f.base.Head {
				commits[commit] = true
			}
		}
	}
	if f.stages, err = r.stages(ctx, f.base.Head, slices.Sorted(maps.Keys(commits)), w.log.Board.Past()); err != nil {
		return err
	}
	w.readHad(f)
	if err := w.readTips(ctx, r, f); err != nil {
		return err
	}
	if err := w.readNumbers(ctx, r, f); err != nil {
		return err
	}
	if err := w.readCarried(ctx, r, f); err != nil {
		return err
	}
	return w.readMerges(ctx, r, f)
}

// readHad says which stages stories have been in on the base since places began.
func (w *Work) readHad(f *facts) {
	var moves []wire.Move
	for _, m := range w.log.Moves().List {
		if _, is := f.graph.own[m.Commit]; is {
			moves = append(moves, m)
		}
	}
	for _, p := range f.places {
		p.had = map[string]bool{}
		if p.mergeBase == "" || len(moves) == 0 {
			continue
		}
		before := f.graph.since(p.mergeBase)
		for _, m := range moves {
			if !before[m.Commit] {
				p.had[m.StoryID+"\x00"+m.ToStage] = true
			}
		}
	}
}
