package board

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"switchyard/internal/feed"
)

// otherPlaces is what a board knows of stories outside its own work tree.
type otherPlaces struct {
	mu      sync.Mutex // locked last
	members []*member
	state   string   // of the board's own HEAD at the last call of Join, the only user
	without []string // work trees without a board
	// standing has the stories that stand elsewhere, kept those that did and whose times are from there.
	standing map[string]storyPlace
	kept     map[string]bool
	// several has the new stories that share their ids with others, by the ids that they have instead.
	several map[string]storyName
}

// storyPlace is a story in a place, nil for the board's own work tree.
type storyPlace struct {
	place *member
	stage string
	story *Story
	base  string // as of member.base
}

// settle takes over the result of a scan: the new view, nil for none, and what is news.
func (b *Board) settle(next *View, news []feed.Notification) {
	if next != nil {
		b.own.Store(next)
	}
	if m := b.place; m != nil {
		if next != nil {
			b.view.Store(next)
		}
		m.changed(next != nil, news)
		return
	}
	if next == nil && len(news) == 0 {
		return
	}
	b.joined.mu.Lock()
	defer b.joined.mu.Unlock()
	b.join(next != nil, news, nil)
}

// changed joins what a scan of the place found with the rest.
func (m *member) changed(view bool, news []feed.Notification) {
	j := &m.of.joined
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Contains(j.members, m) { // it is being read for the first time, or is gone
		return
	}
	for _, n := range news {
		m.news[n.StoryID] = true
	}
	if (view || len(news) > 0) && m.evaluate() {
		m.of.join(false, nil, m.takeNews())
	}
}

// evaluate finds out which stories have moved in the place. It returns false as long as what to compare them with is
// unknown: the place then stays as it was.
func (m *member) evaluate() bool {
	if m.isStale() {
		return false
	}
	m.moved = map[string]storyPlace{}
	if m.Base == nil {
		return true
	}
	view := m.board.own.Load()
	for i := range view.Stages {
		stage := &view.Stages[i]
		for j := range stage.Stories {
			story := &stage.Stories[j]
			base, id := m.base(story.ID), story.ID
			if n, is := m.board.named(id); is {
				id = n.id
			}
			if m.Only != nil && !m.Only[id] || base == stage.Name || m.Had(story.ID, stage.Name) {
				continue
			}
			m.moved[story.ID] = storyPlace{m, stage.Name, story, base}
		}
	}
	return true
}

func (m *member) takeNews() map[string]bool {
	news := map[string]bool{}
	for id := range m.news {
		news[m.of.joined.idOf(m.board, id)] = true
	}
	m.news = map[string]bool{}
	return news
}

// join rebuilds the view from the board's own and what stands elsewhere. News is what the last scan of its own work
// tree found, ids are the stories with news elsewhere: differences in other stories are not news.
func (b *Board) join(changed bool, news []feed.Notification, ids map[string]bool) {
	j, own, was := &b.joined, b.own.Load(), b.view.Load()
	touched := map[string]bool{} // that stand elsewhere, did, or have their times from when they did
	for id := range j.standing {
		touched[id] = true
	}
	maps.Copy(touched, j.kept)
	others := j.number(b)
	for id := range others {
		touched[id] = true
	}
	j.standing = map[string]storyPlace{}
	for _, m := range j.members {
		for id := range m.joined {
			touched[id] = true
			if s := b.stands(id, nil, ""); s.place != nil {
				j.standing[id] = s
			}
		}
	}
	if len(touched) == 0 || own.Err != nil || was == nil {
		if !changed {
			own = nil
		}
		b.show(own, news)
		return
	}
	told := slices.DeleteFunc(slices.Clone(news), func(n feed.Notification) bool { return touched[n.StoryID] })
	isNew := map[string]bool{}
	maps.Copy(isNew, ids)
	for _, n := range news {
		isNew[j.idOf(b, n.StoryID)] = true
	}
	j.kept = map[string]bool{}
	next := *own
	next.Stages = j.stages(own, touched)
	for _, id := range slices.Sorted(maps.Keys(touched)) {
		last, from, had := was.Find(id)
		story, to, stands := own.Find(j.idIn(b, id))
		since := story.Since
		s, elsewhere := j.standing[id]
		if elsewhere {
			story, to, stands = *s.story, s.stage, true
			story.Worktree, story.Branch = s.place.Worktree, s.place.Branch
			story.MergeFailure = cmp.Or(story.MergeFailure, b.failure(id))
		}
		if story.ID = id; had && from == to && !others[id] {
			if story.Since = last.Since; last.Blocked != "" && story.Blocked != "" {
				story.BlockedSince = last.BlockedSince
			}
			if !elsewhere && !since.Equal(last.Since) {
				j.kept[id] = true
			}
		}
		if stands {
			insert(next.Stages, to, story)
			if isNew[id] && !others[id] {
				told = append(told, newsOf(last, from, story, to)...)
			}
		}
	}
	next.Version, next.replaced = b.nextVersion(), make(chan struct{})
	b.show(&next, told)
}

func newsOf(was Story, from string, now Story, to string) []feed.Notification {
	s := &story{
		id: now.ID, stage: to,
		facts: facts{name: now.Name, blocked: now.Blocked, mergeFailure: now.MergeFailure},
	}
	var c changes
	s.notify(story{stage: from, facts: facts{blocked: was.Blocked, mergeFailure: was.MergeFailure}}, &c)
	return c.notifications
}

// stands says where a story stands: of the places it has moved to, in the one with the furthest stage; then where its
// record changed last; on a tie, in the board's own work tree. That one counts beside another place if its stage is not
// the one where the other began. A non-empty stage is assumed to be the story's at a place.
func (b *Board) stands(id string, at *member, stage string) (best storyPlace) {
	j, own := &b.joined, b.own.Load()
	story, to, found := own.Find(j.idIn(b, id))
	if at == nil && stage != "" {
		to = stage
	}
	var moved []storyPlace
	for _, m := range j.members {
		s, has := m.joined[id]
		if m == at && stage != "" {
			there := j.idIn(m.board, id)
			s = storyPlace{m, stage, &story, m.base(there)}
			has = s.base != stage && !m.Had(there, stage)
		}
		if !has {
			continue
		}
		if found && best.story == nil && s.base != to {
			best = storyPlace{stage: to, story: &story}
		}
		moved = append(moved, s)
	}
	for _, s := range moved {
		if best.story == nil || cmp.Or(
			own.compare(s.stage, best.stage), s.story.modified.Compare(best.story.modified)) > 0 {
			best = s
		}
	}
	if best.story == nil && found {
		best = storyPlace{stage: to, story: &story}
	}
	return best
}

// compare orders stages, including those that only other places have.
func (v *View) compare(a, b string) int {
	i := slices.IndexFunc(v.Stages, func(s Stage) bool { return s.Name == a })
	k := slices.IndexFunc(v.Stages, func(s Stage) bool { return s.Name == b })
	if i < 0 || k < 0 {
		return compareNumbered(a, b)
	}
	return cmp.Compare(i, k)
}

// stages returns the stages of the board, and of other places where stories stand, without the touched stories.
func (j *otherPlaces) stages(own *View, touched map[string]bool) []Stage {
	stages := slices.Clone(own.Stages)
	for i := range stages {
		has := func(s Story) bool { return touched[s.ID] }
		if slices.ContainsFunc(stages[i].Stories, has) {
			stages[i].Stories = slices.DeleteFunc(slices.Clone(stages[i].Stories), has)
		}
	}
	for _, s := range j.standing {
		view := s.place.board.own.Load()
		at := slices.IndexFunc(view.Stages, func(st Stage) bool { return st.Name == s.stage })
		if at < 0 || slices.ContainsFunc(stages, func(st Stage) bool { return st.Name == s.stage }) {
			continue
		}
		added := view.Stages[at]
		added.Stories = nil
		stages = append(stages, added)
		slices.SortStableFunc(stages, func(a, b Stage) int { return compareNumbered(a.Name, b.Name) })
	}
	return stages
}

func insert(stages []Stage, name string, story Story) {
	for i := range stages {
		if stages[i].Name != name {
			continue
		}
		list := stages[i].Stories
		at := slices.IndexFunc(list, func(s Story) bool { return compareNumbered(s.ID, story.ID) > 0 })
		if at < 0 {
			at = len(list)
		}
		stages[i].Stories = slices.Insert(slices.Clone(list), at, story)
	}
}
