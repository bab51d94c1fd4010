package gitlog

import (
	"cmp"
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

// facts are what git says about a repository's places.
type facts struct {
	signature string
	base      string // the branch that is checked out, "" for none
	head      string // its commit
	baseAt    time.Time
	baseTree  string
	below     string   // where the board is in a work tree
	paths     []string // of the work trees
	places    []*place
	heads     map[string]string // by branch
	graph     *graph
	stages    *stages
	ids       []string
	dirs      []string // directories of head
}

// place is a work tree with its branch, or a branch without a work tree.
type place struct {
	worktree, branch, head string
	dir, state             string // as in board.Place
	tree                   git.Tree
	hasBoard               bool
	relation
	at      time.Time
	author  string
	numbers numbers
	carries []string    // commits since which it has only our moves
	merge   *git.Merged // nil if git cannot tell
	named   []string    // stories, like commits
	commits []string
	had     map[string]bool   // stages that stories have been in on the base since it began
	own     map[string]string // the commits made in it according to its reflog
	clashed time.Time         // since when it conflicts with the base
}

func (p *place) key() string { return cmp.Or(p.worktree, p.branch) }

// isMerged reports whether the base contains what the place had, or whether merging it would leave the base's tree
// unchanged. linked is whether it was a story's while it had commits of its own. Nothing is merged during a rebase or
// the like: HEAD may be at the base.
func (p *place) isMerged(baseTree string, linked bool) bool {
	if p.worktree != "" && p.tree.IsUnderWay() {
		return false
	}
	if p.ahead == 0 {
		return (linked || len(p.own) > 0) && p.mergeBase == p.head
	}
	return p.merge != nil && len(p.merge.Conflicts) == 0 && p.merge.Tree == baseTree
}

// links returns the place's only story, ignoring links by commits; none if there are several.
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

// look finds the places, and returns a signature that shows whether anything must be read again. It returns nil if HEAD
// has no commit.
func (w *Work) look(ctx context.Context, r repository) (*facts, error) {
	f := &facts{heads: map[string]string{}, base: r.tree.Branch()}
	var err error
	if f.below, err = filepath.Rel(r.tree.Dir, files.Resolved(w.log.Dir)); err != nil {
		return nil, err
	}
	branches, err := r.Branches(ctx, time.Now().AddDate(0, 0, -branchDays), maxBranches)
	if err != nil {
		return nil, err
	}
	for _, b := range branches {
		f.heads[b.Name] = b.Head
	}
	if f.head = f.heads[f.base]; f.head == "" {
		if f.head, err = r.Head(ctx); err != nil || f.head == "" {
			return nil, err
		}
	}
	taken := map[string]bool{f.base: true}
	f.paths = []string{r.tree.Dir}
	if err := w.lookTrees(ctx, r, f, taken); err != nil {
		return nil, err
	}
	for _, b := range branches {
		if !taken[b.Name] {
			f.places = append(f.places, &place{branch: b.Name, head: b.Head})
		}
	}
	w.sign(f)
	return f, nil
}

// lookTrees finds the work trees that have a commit, and the heads of their older branches. A branch that is checked
// out somewhere is not listed again.
func (w *Work) lookTrees(ctx context.Context, r repository, f *facts, taken map[string]bool) error {
	if !w.withTrees {
		return nil
	}
	trees, rest, missing := r.tree.Others(maxTrees)
	for _, branch := range rest {
		taken[branch] = true
	}
	for _, path := range missing[:min(len(missing), maxTrees)] {
		if !w.missing[path] && len(w.missing) < maxMissing {
			w.missing[path] = true
			w.log.Log.Warn("gitlog: a work tree is missing", "path", path)
		}
	}
	var older []string
	for _, t := range trees {
		if taken[t.Branch] = true; t.Branch != "" && f.heads[t.Branch] == "" {
			older = append(older, "refs/heads/"+t.Branch)
		}
	}
	if len(older) > 0 {
		branches, err := r.Branches(ctx, time.Time{}, maxTrees, older...)
		if err != nil {
			return err
		}
		for _, b := range branches {
			f.heads[b.Name] = b.Head
		}
	}
	for _, t := range trees {
		if head := cmp.Or(t.Head, f.heads[t.Branch]); head != "" {
			f.paths = append(f.paths, t.Path)
			f.places = append(f.places, &place{
				worktree: t.Path, branch: t.Branch, head: head, tree: t.Tree, dir: filepath.Join(t.Dir, f.below),
				state: t.HeadState(), own: t.OwnCommits(),
			})
		}
	}
	return nil
}

// sign sets the signature of what git and the board say, and the board's stories.
func (w *Work) sign(f *facts) {
	var signature strings.Builder
	signature.WriteString(f.head + f.base + w.log.Board.Past().Config + w.log.Moves().ID)
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

// read fills in what git says about places.
func (w *Work) read(ctx context.Context, r repository, f *facts) error {
	heads := domain.Map(f.places, func(p *place) string { return p.head })
	slices.Sort(heads)
	heads = slices.Compact(heads)
	names := newNamer(f.ids)
	var err error
	if f.graph, err = r.graph(ctx, f.head, heads, names); err != nil {
		return err
	}
	relations, err := r.relate(ctx, f.graph, heads)
	if err != nil {
		return err
	}
	f.places = slices.DeleteFunc(f.places, func(p *place) bool { // a branch that is part of the base
		p.relation = relations[p.head]
		return p.worktree == "" && p.ahead == 0
	})
	_ = r.count(ctx, w.now.Load().commits, f.graph.commits) // they are shown even without line counts
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
			if commit != "" && commit != f.head {
				commits[commit] = true
			}
		}
	}
	if f.stages, err = r.stages(ctx, f.head, slices.Sorted(maps.Keys(commits)), w.log.Board.Past().Named()); err != nil {
		return err
	}
	w.readBaseStages(f)
	for _, read := range []func(context.Context, repository, *facts) error{
		w.readTips, w.readNumbers, w.readCarried, w.readMerges, w.readDirs,
	} {
		if err := read(ctx, r, f); err != nil {
			return err
		}
	}
	return nil
}

// readBaseStages finds the stages that stories have been in on the base since places began.
func (w *Work) readBaseStages(f *facts) {
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
