package wire

import (
	"cmp"
	"time"

	"switchyard/internal/domain"
)

// Places returns places from a project server, their texts cut and their numbers in range.
func (w Works) Places() []domain.Place {
	if w == nil {
		return nil
	}
	return domain.Map(w, func(w Work) domain.Place {
		return domain.Place{
			Branch: name(w.Branch), Worktree: name(w.Worktree), Head: domain.CutText(w.Head),
			At: time.UnixMilli(min(max(w.AtMS, 0), lastDate)), Author: domain.CutText(w.Author),
			Ahead: count(w.Ahead), Behind: count(w.Behind), Files: count(w.Files), Added: count(w.Added),
			Removed: count(w.Removed), Uncommitted: count(w.Uncommitted), Stage: name(w.Stage),
			Conflicts: domain.Map(w.Conflicts, domain.CutText), ConflictsKnown: w.Conflicts != nil, Merged: w.Merged,
			Link: domain.CutText(w.Link), Carries: domain.Map(w.Carries, domain.CutText),
		}
	})
}

// NewWorks returns nil, which is null in JSON, for nil.
func NewWorks(places []domain.Place) Works {
	if places == nil {
		return nil
	}
	return domain.Map(places, func(p domain.Place) Work {
		w := Work{
			Branch: OrNull(p.Branch), Worktree: OrNull(p.Worktree), Head: p.Head, AtMS: p.At.UnixMilli(), Author: p.Author,
			Ahead: p.Ahead, Behind: p.Behind, Files: p.Files, Added: p.Added, Removed: p.Removed,
			Uncommitted: p.Uncommitted, Stage: OrNull(p.Stage), Merged: p.Merged, Link: p.Link,
		}
		if p.ConflictsKnown {
			w.Conflicts = append(PathList{}, p.Conflicts...)
		}
		return w
	})
}

// domain returns what an item says of its first place, nil for nil.
func (w *ItemWork) domain() *domain.ItemWork {
	if w == nil {
		return nil
	}
	unknown := -1
	item := &domain.ItemWork{
		Branch: name(w.Branch), Worktree: name(w.Worktree), Ahead: count(w.Ahead), Files: count(w.Files),
		Added: count(w.Added), Removed: count(w.Removed), Uncommitted: count(w.Uncommitted),
		Conflicts: min(*cmp.Or(w.Conflicts, &unknown), maxCount), Places: count(w.Places),
	}
	first := ItemPlace{Place: cmp.Or(item.Branch, item.Worktree), Ahead: item.Ahead, Count: item.Conflicts}
	if c := w.Clash; c != nil || item.Conflicts > 0 { // a server that is not ours may say no more
		c = cmp.Or(c, &first)
		item.Clash = &domain.Clash{
			Place: domain.CutText(c.Place), Files: domain.Map(c.Files[:min(len(c.Files), clashFiles)], domain.CutText),
			Count: count(c.Count), Since: Time(new(min(max(c.SinceMS, 0), lastDate))),
		}
	}
	if u := w.Unmerged; u != nil || item.Ahead > 0 && !w.Merged {
		u = cmp.Or(u, &first)
		item.Unmerged = &domain.UnmergedPlace{Place: domain.CutText(u.Place), Ahead: count(u.Ahead)}
	}
	return item
}

func name(text *string) string { return domain.CutText(Text(text)) }

// maxCount is the largest number that people read.
const maxCount = 1_000_000_000

func count(n int) int { return min(max(n, 0), maxCount) }
