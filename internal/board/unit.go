package board

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"switchyard/internal/domain"
)

// unit is what was last read of one.
type unit struct {
	name    string
	stories []unitStory
	stable  bool      // any change since it was read shows in its files' identities
	torn    time.Time // when it was first found torn
	fault   string
}

type unitStory struct {
	file    *file
	key     string // the stage's
	blocked string // why the files themselves say that it is
}

// load reads the unit again. It returns nil for one without stories.
func (u *unit) load(s *units, rules *rules, tree *tree) *unit {
	now := time.Now()
	entries, err := rules.stories(u.name, tree)
	switch {
	case errors.Is(err, errTorn) && len(u.stories) > 0 &&
		(u.torn.IsZero() || now.Sub(u.torn) < grace || len(entries) == 0):
		return u.broken(now)
	case err != nil && !errors.Is(err, errTorn):
		next := *u
		if next.fault = err.Error(); next.fault != u.fault {
			s.log.Warn("board: cannot read "+u.name, "error", err)
		}
		return &next
	case len(entries) == 0:
		return nil
	}
	next := &unit{name: u.name, stories: make([]unitStory, len(entries))}
	for i, e := range entries {
		next.stories[i] = e.read(tree, now)
	}
	next.stable = now.UnixNano()-tree.newest >= int64(coarseTick)
	return next
}

// broken returns the unit while its files are being written, or stay broken.
func (u *unit) broken(now time.Time) *unit {
	next := *u
	if next.torn.IsZero() {
		next.torn = now
	}
	state := torn
	if now.Sub(next.torn) >= grace { // what was there counts for as long as nothing else does
		state = whole
	}
	next.stories = slices.Clone(u.stories)
	for i, story := range next.stories {
		f := *story.file
		f.facts.state, next.stories[i].file = state, &f
	}
	return &next
}

func (e *entry) read(tree *tree, now time.Time) unitStory {
	r := e.record()
	f := &file{id: e.id, modified: cmp.Or(r.modified, tree.modified(r.path), now), facts: facts{
		name: limit(cmp.Or(r.name, words(e.id))), criteria: r.criteria(), version: r.hash(e.stage),
	}}
	if r.blocked != "" {
		f.facts.blocked = domain.CutReason(r.blocked)
	}
	return unitStory{f, e.stage, f.facts.blocked}
}
