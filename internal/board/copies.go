package board

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// place is where a story is: in a unit, at an index of its stories.
type place struct {
	unit *unit
	at   int
	gone bool // it was there, and may come back
}

func (p place) story() *unitStory { return &p.unit.stories[p.at] }

// nth returns how many stories of the same id precede it in its unit.
func (p place) nth() (n int) {
	for i := range p.at {
		if p.unit.stories[i].id == p.story().id {
			n++
		}
	}
	return n
}

// number says where each story is. Of several with one id, the first keeps it, and the others get ids derived from it.
// It takes a second to know which have just come or gone: while a story is copied and then deleted, there are two for a
// moment. If the number of stories with an id has changed, or one has replaced another, nothing has moved: those files
// are silent.
func (s *units) number(next *index, order []string, settled bool) {
	known := s.index.Load()
	found := map[string][]place{} // by ids that several stories have, or had
	if known != nil {
		for id := range known.copies {
			found[id] = nil
		}
	}
	next.places, next.copies = make(map[string]place, len(s.files)), map[string][]place{}
	for _, name := range order {
		u := s.units[name]
		for i := range u.stories {
			story, p := &u.stories[i], place{unit: u, at: i}
			list, several := found[story.id]
			if first, is := next.places[story.id]; is && !several {
				list, several = []place{first}, true
			}
			if several {
				found[story.id] = append(list, p)
			}
			if story.hidden, story.file.silent = several, false; several {
				continue
			}
			next.places[story.id] = p
			story.name(story.id)
			if before, is := known.place(story.id); is && !next.rules.isSame(known, before, p) {
				story.file.silent = true
			}
		}
	}
	for id := range s.waits {
		if _, several := found[id]; !several {
			delete(s.waits, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		s.arrange(next, id, found[id], settled)
	}
}

func (x *index) place(id string) (p place, is bool) {
	if x != nil {
		p, is = x.places[id]
	}
	return p, is
}

func (story *unitStory) name(id string) {
	if story.hidden = false; story.file.id != id {
		story.file.id, story.file.story = id, nil
	}
}

// arrange numbers the stories that share an id.
func (s *units) arrange(next *index, id string, found []place, settled bool) {
	known := s.index.Load()
	rules := next.rules
	if !rules.whole {
		slices.SortStableFunc(found, comparePlaces)
	}
	shown := known.shown(id)
	list, now := found, time.Now()
	since, waits := s.waits[id]
	switch {
	case known == nil || settled || len(found) == len(shown) || waits && now.Sub(since) >= grace:
		delete(s.waits, id)
	default:
		if !waits {
			since = now
			s.waits[id] = now
		}
		s.rescanAt(since.Add(grace))
		list = rules.hold(shown, found)
	}
	changed := known != nil && len(shown) != len(list)
	for i, p := range list {
		if p.gone {
			continue
		}
		name := id
		if i > 0 {
			name = next.unusedName(copyID(id, i))
		}
		next.places[name] = p
		p.story().name(name)
		switch {
		case changed:
			p.story().file.silent = true
		case known != nil && len(list) > 1:
			p.story().file.silent = !rules.isOne(shown[i], p)
		case known != nil:
			p.story().file.silent = !rules.isSame(known, shown[i], p)
		}
	}
	if len(list) > 0 && list[0].gone {
		delete(next.places, id)
	}
	if len(list) > 1 {
		next.copies[id] = list
	}
}

// shown returns the places shown for an id: one if a single story has it.
func (x *index) shown(id string) []place {
	if x == nil {
		return nil
	}
	if p, is := x.place(id); is && x.copies[id] == nil {
		return []place{p}
	}
	return x.copies[id]
}

// unusedName returns a name that no story has as its own id.
func (x *index) unusedName(name string) string {
	for _, taken := x.places[name]; taken; _, taken = x.places[name] {
		name += "~"
	}
	return name
}

// hold returns the stories as shown. A new one takes the place of one that is gone, if any.
func (r *rules) hold(shown, found []place) []place {
	list := slices.Clone(shown[:max(len(shown), min(1, len(found)))])
	left := slices.Clone(found)
	take := func(is func(place) bool) (p place, ok bool) {
		i := slices.IndexFunc(left, is)
		if i < 0 {
			return p, false
		}
		p = left[i]
		left = slices.Delete(left, i, i+1)
		return p, true
	}
	for i := range list {
		p, ok := take(func(p place) bool { return i < len(shown) && r.isOne(shown[i], p) })
		if list[i].gone = !ok; ok {
			list[i] = p
		}
	}
	for i := range list {
		if p, ok := take(func(place) bool { return list[i].gone }); ok {
			list[i] = p
		}
	}
	return list
}

// comparePlaces orders stories of one id: by folder, then by mark, those without one last, then by file.
func comparePlaces(a, b place) int {
	last := func(mark string) string { return cmp.Or(mark, "\xff") }
	return cmp.Or(
		cmp.Compare(a.unit.name[0], b.unit.name[0]), strings.Compare(last(a.story().mark), last(b.story().mark)),
		strings.Compare(a.unit.name, b.unit.name),
	)
}

// isOne reports whether two places, both of an id that several stories share, are of the same story.
func (r *rules) isOne(was, now place) bool {
	if r.whole {
		return was.story().file.facts.name == now.story().file.facts.name
	}
	return was.unit.name == now.unit.name
}

// isSame reports whether the only story of an id is the one that had it before: in the same file, in a file of the same
// name, or in a new one with the same mark or title. Otherwise it has taken over the id of one that is gone.
func (r *rules) isSame(known *index, was, now place) bool {
	a, b := was.story(), now.story()
	isKnown := func() bool { // under another id
		for _, p := range known.places {
			if p.unit.name == now.unit.name {
				return true
			}
		}
		return false
	}
	switch {
	case a.file == b.file || r.unique == nil:
		return true
	case !r.whole && path.Base(was.unit.name) == path.Base(now.unit.name):
		return true
	case !r.whole && isKnown():
		return false
	}
	return a.mark != "" && a.mark == b.mark || a.file.facts.name == b.file.facts.name
}
