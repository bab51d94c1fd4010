package gitlog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"switchyard/internal/wire"
)

// publish publishes what was read, with the links that the board's view adds.
func (w *Work) publish() {
	f := w.facts
	next := &works{
		base:    &wire.Base{Branch: wire.OrNull(f.base), Commit: f.head},
		stories: map[string][]wire.Work{}, commits: f.graph.commits, trees: f.paths,
	}
	moved, ahead := w.board.HasMoved(), map[string]bool{}
	for _, p := range f.places {
		links := map[string]string{}
		for _, id := range p.commits {
			links[id] = "commit"
		}
		for _, id := range p.named {
			links[id] = "name"
		}
		for id := range moved[p.key()] {
			links[id] = "moved"
		}
		key := p.key() + " " + p.branch
		for id, link := range w.linked[key] {
			// Once it is merged, or the story has moved back, nothing else says whose it was.
			if p.ahead == 0 || link == "moved" && w.ahead[key] {
				links[id] = cmp.Or(links[id], link)
			}
		}
		if ahead[key] = p.ahead > 0; ahead[key] {
			w.linked[key] = links
		}
		next.links = append(next.links, p.links(links)...)
		for id, link := range links {
			work := p.work(w.statuses[p.worktree])
			work.Link, work.Merged = link, p.isMerged(f.baseTree, w.linked[key] != nil)
			if work.Stage = wire.OrNull(f.stages.of(p.head, id)); p.worktree != "" && p.hasBoard {
				work.Stage = wire.OrNull(w.board.StageIn(p.worktree, id))
			}
			next.stories[id] = append(next.stories[id], work)
		}
	}
	w.ahead = ahead
	rank := []string{"moved", "name", "commit"}
	for _, list := range next.stories {
		slices.SortStableFunc(list, func(a, b wire.Work) int {
			return cmp.Or(cmp.Compare(slices.Index(rank, a.Link), slices.Index(rank, b.Link)), cmp.Compare(b.AtMS, a.AtMS))
		})
	}
	sum := sha256.New()
	_ = json.NewEncoder(sum).Encode([]any{next.base, next.trees, next.stories})
	next.version = hex.EncodeToString(sum.Sum(nil)[:6])
	w.now.Store(next)
}
