package board

import (
	"bytes"
	"cmp"
	"errors"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// unit is what was last read of one. Readers use its name and entries only.
type unit struct {
	name    string
	entries []entry     // unless they are read again each time
	stories []unitStory // of the entries
	stable  bool        // any change since it was read shows in its files' identities
	torn    time.Time   // when it was first found torn
	fault   string
}

type unitStory struct {
	file    *file
	key     string   // the stage's
	blocked string   // why the files themselves say that it is
	text    identity // of the entry's other file when it was read
	stable  bool
}

// load reads the unit again. It returns nil for one without stories.
func (u *unit) load(s *units, rules *rules, tree *tree, settled bool) *unit {
	now := time.Now()
	old := u.entries
	if settled {
		old = nil
	}
	entries, err := rules.stories(u.name, tree, old)
	switch {
	case errors.Is(err, errTorn) && len(u.stories) > 0 &&
		(u.torn.IsZero() || now.Sub(u.torn) < grace || len(entries) == 0):
		next := *u // what was there counts for as long as nothing else does
		if next.torn.IsZero() {
			next.torn = now
		}
		if due := next.torn.Add(grace); now.Before(due) && (s.again.IsZero() || due.Before(s.again)) {
			s.again = due
		}
		return &next
	case err != nil && !errors.Is(err, errTorn):
		next := *u
		if next.fault = err.Error(); next.fault != u.fault {
			s.log.Warn("board: cannot read "+u.name, "error", err)
		}
		return &next
	case len(entries) == 0:
		return nil
	}
	places := sync.OnceValue(func() map[string]int { return placesOf(old) })
	next := &unit{name: u.name, stories: make([]unitStory, len(entries)), stable: true}
	for i, e := range entries {
		place, known := i, i < len(old) && old[i].id == e.id
		if !known {
			place, known = places()[e.id]
		}
		known = known && e.raw != nil && old[place].stage == e.stage && bytes.Equal(old[place].raw, e.raw)
		if known && u.stories[place].stable && u.stories[place].text == s.files[e.text] {
			next.stories[i] = u.stories[place]
			continue
		}
		next.stories[i] = e.read(tree, now)
		next.stable = next.stable && next.stories[i].stable
	}
	next.stable = next.stable && isSettled(tree.newest, now)
	if entries[0].raw != nil {
		for i := range entries {
			entries[i].record = nil // which holds what was read
		}
		next.entries = entries
	}
	return next
}

// placesOf says where in a list stories are.
func placesOf(entries []entry) map[string]int {
	places := make(map[string]int, len(entries))
	for i := range entries {
		places[entries[i].id] = i
	}
	return places
}

func (e *entry) read(tree *tree, now time.Time) unitStory {
	r := e.record()
	f := &file{id: e.id, modified: cmp.Or(r.modified, tree.modified(r.path), now), facts: facts{
		name: limit(cmp.Or(r.name, words(e.id))), criteria: r.criteria(), version: r.hash(e.stage),
	}}
	if r.blocked != "" {
		f.facts.blocked = domain.CutReason(r.blocked)
	}
	return unitStory{f, e.stage, f.facts.blocked, tree.read[e.text], isSettled(tree.read[e.text].changed, now)}
}
