package board

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// unit is what was last read of a unit. Readers use only its name and entries.
type unit struct {
	name    string
	entries []entry     // unless they are read again each time
	stories []unitStory // of the entries
	stable  bool        // any change since it was read shows in its files' identities
	torn    time.Time   // when it was first found torn
	fault   *faultyFile // why it cannot be read: its stories are from before
}

type unitStory struct {
	id      string // the prefix of its file's id
	mark    string // the entry's
	path    string // its record's
	file    *file
	hidden  bool        // it is not shown, or not yet
	fault   *faultyFile // its record's
	key     string      // the stage's
	blocked string      // why it is blocked according to the files themselves
	title   string      // its record's
	depends []string    // as in its record, like parts
	parts   []string
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
	if kept := u.keep(s, tree, entries, err, now); kept != nil {
		return kept
	}
	if len(entries) == 0 {
		return nil
	}
	places := sync.OnceValue(func() map[string]int { return placesOf(old) })
	next := &unit{name: u.name, stories: make([]unitStory, len(entries)), stable: true}
	taken := make([]bool, len(old)) // so that of equal ones each is used once
	for i, e := range entries {
		place, known := i, i < len(old) && old[i].id == e.id
		if !known {
			place, known = places()[e.id]
		}
		known = known && !taken[place] && e.raw != nil && old[place].stage == e.stage && bytes.Equal(old[place].raw, e.raw)
		if known && u.stories[place].stable && u.stories[place].text == s.files[e.text] {
			next.stories[i], taken[place] = u.stories[place], true
			next.stories[i].recover()
			continue
		}
		next.stories[i] = e.read(tree, now)
		if next.stories[i].fault != nil {
			next.stories[i].keep(u.stories)
		}
		next.stable = next.stable && next.stories[i].stable
	}
	next.stable = next.stable && isSettled(tree.newest, now)
	if entries[0].raw != nil {
		for i := range entries {
			entries[i].record = nil // it holds on to what was read
		}
		next.entries = entries
	}
	return next
}

// keep returns the unit as it was if that still counts: while its files are being written, or if they cannot be read.
func (u *unit) keep(s *units, tree *tree, entries []entry, err error, now time.Time) *unit {
	isTorn := errors.Is(err, errTorn)
	if err == nil || isTorn && len(u.stories) == 0 {
		return nil
	}
	next := *u
	if next.torn.IsZero() {
		next.torn = now
	}
	due := next.torn.Add(grace)
	switch waits := s.index.Load() != nil && u.fault == nil && now.Before(due); {
	case waits:
		s.rescanAt(due)
	case isTorn && len(entries) > 0:
		return nil
	default:
		next.torn, next.stable = time.Time{}, isSettled(tree.newest, now)
		next.fault = newFaultyFile(u.path(), err)
		for i := range next.stories {
			next.stories[i].file.facts.fault = next.fault.reason
		}
	}
	return &next
}

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
	if r.fault != nil {
		f.facts.fault = r.fault.reason
	}
	return unitStory{
		id: e.id, mark: e.mark, path: r.path, file: f, key: e.stage, blocked: f.facts.blocked, fault: r.fault,
		title: limit(r.name), depends: r.depends, parts: r.parts,
		text: tree.read[e.text], stable: isSettled(tree.read[e.text].changed, now),
	}
}

// keep restores what was last read of a story that now has a fault.
func (s *unitStory) keep(stories []unitStory) {
	last := slices.IndexFunc(stories, func(was unitStory) bool { return was.id == s.id })
	if last < 0 {
		return
	}
	fault := s.file.facts.fault
	s.file.facts, s.title = stories[last].file.facts, stories[last].title
	s.file.facts.fault = fault
}

func (s *unitStory) recover() {
	if s.fault == nil {
		s.file.facts.fault = ""
	}
}

func (u *unit) path() string {
	if _, path, marked := strings.Cut(u.name, " "); marked {
		return path
	}
	return u.name
}
