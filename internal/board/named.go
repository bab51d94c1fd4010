package board

import (
	"fmt"
	"path"
	"slices"
)

// storyName tells a story from others with the same id, in files with other names.
type storyName struct{ id, file string }

func (n storyName) key() string { return n.id + "\x00" + n.file }

func (p place) named() storyName { return storyName{p.story().id, path.Base(p.unit.name)} }

func (r *rules) isNamed() bool { return r.unique != nil && !r.whole }

// index returns where the stories are, nil if files with the same id always have the same name.
func (b *Board) index() *index {
	if s, is := b.layout.(*units); is {
		if x := s.index.Load(); x.rules.isNamed() {
			return x
		}
	}
	return nil
}

// named returns the story that has an id on the board.
func (b *Board) named(id string) (n storyName, is bool) {
	p, is := b.index().place(id)
	if is {
		n = p.named()
	}
	return n, is
}

// base returns the stage of a story where the place began: of several with its id, that of the one with the same file
// name; of a single one, whatever its file was called.
func (m *member) base(id string) (stage string) {
	x := m.board.index()
	p, is := x.place(id)
	if !is {
		return m.Base(id)
	}
	if stage = m.Base(p.named().key()); stage == "" && x.copies[p.story().id] == nil {
		stage = m.Base(p.story().id)
	}
	return stage
}

// number gives ids to new stories that share one between places but have different file names: those that they would
// have on one board. It returns these, with whether each was another story's before: nothing has moved by that.
func (j *otherPlaces) number(own *Board) (others map[string]bool) {
	found := map[string][]place{}
	for _, m := range j.members {
		for id, s := range m.moved {
			if p, is := m.board.index().place(id); is && s.base == "" {
				found[p.story().id] = append(found[p.story().id], p)
			}
		}
	}
	others = map[string]bool{}
	before := j.several
	j.several = map[string]storyName{}
	for id, list := range found {
		list = append(list, own.index().shown(id)...)
		slices.SortFunc(list, comparePlaces)
		var names []storyName
		for _, p := range list {
			if !p.gone && !slices.Contains(names, p.named()) {
				names = append(names, p.named())
			}
		}
		for i, n := range names {
			if len(names) > 1 {
				j.several[copyID(id, i)] = n
			}
		}
	}
	for _, ids := range []map[string]storyName{before, j.several} {
		for id := range ids {
			others[id] = before[id] != j.several[id]
		}
	}
	for _, m := range j.members {
		m.joined = map[string]storyPlace{}
		for id, s := range m.moved {
			m.joined[j.idOf(m.board, id)] = s
		}
	}
	return others
}

// copyID returns the id of a story that comes after so many others with its id.
func copyID(id string, others int) string {
	if others == 0 {
		return id
	}
	return fmt.Sprintf("%s~%d", id, others+1)
}

// idOf returns the id that a story of one board has on the joined board, idIn the reverse; "" for none.
func (j *otherPlaces) idOf(b *Board, id string) string {
	if len(j.several) == 0 {
		return id
	}
	if n, is := b.named(id); is {
		for other, m := range j.several {
			if m == n {
				return other
			}
		}
	}
	return id
}

func (j *otherPlaces) idIn(b *Board, id string) string {
	n, several := j.several[id]
	if !several {
		return id
	}
	x := b.index()
	for i, p := range x.shown(n.id) {
		if p.gone || p.named() != n {
			continue
		}
		own := copyID(n.id, i)
		for q, taken := x.place(own); taken && q.named() != n; q, taken = x.place(own) {
			own += "~" // like unusedName
		}
		return own
	}
	return ""
}
