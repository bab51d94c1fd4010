package board

import (
	"slices"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/feed"
)

// grace is how long a story may be gone and count as moved when it comes back, and how long a story whose file is
// torn keeps what the file said before: an editor's save may look like either.
const grace = time.Second

// tracker turns successive looks at a board into notifications. It does no I/O and takes the time as a value.
type tracker struct {
	looks   int
	stages  []string
	stories map[string]*story
	// unread are stages that could not be read since they are there: what stands in one when it is read at last is
	// no news.
	unread map[string]bool
}

// story is what is known of one id.
type story struct {
	id      string
	stage   string // where it counts
	facts   facts
	sinceMS int64

	look           int     // the last look that saw it
	places, before []place // where that look and the one before saw it, in the order of stages
	gone           time.Time
	torn           time.Time // when its file was first found torn; zero while it is whole, as gone is while it stands
}

// place is a stage with a story's file in it.
type place struct {
	stage string
	file  *file
}

// news is what a look found out.
type news struct {
	notifications []feed.Notification
	changed       bool      // the board looks different now
	again         time.Time // when to look again though no file changes; zero for never
}

// update takes in a look that ended at now. What the first one sees is where everything starts, and no news.
func (t *tracker) update(now time.Time, stages []*stage) news {
	if t.looks == 0 {
		t.stories, t.unread = map[string]*story{}, map[string]bool{}
	}
	t.looks++
	var n news
	stood := t.enter(stages, &n)
	for _, stage := range stages {
		for _, file := range stage.files {
			if s := t.stories[file.id]; s.places[0].file == file { // once for each story
				s.settle(now, stood, &n)
			}
		}
	}
	for id, s := range t.stories {
		switch {
		case s.look == t.looks:
		case s.gone.IsZero():
			s.gone = now
			n.lookAgain(now.Add(grace))
		case now.Sub(s.gone) >= grace:
			delete(t.stories, id)
			n.changed = true
		default:
			n.lookAgain(s.gone.Add(grace))
		}
	}
	return n
}

// enter notes where each story stands, and returns the stages whose unknown stories stood there before we could look.
func (t *tracker) enter(stages []*stage, n *news) (stood map[string]bool) {
	stood = map[string]bool{}
	var names []string
	for _, stage := range stages {
		names = append(names, stage.name)
		switch {
		case stage.err == nil:
			stood[stage.name] = t.looks == 1 || t.unread[stage.name]
			delete(t.unread, stage.name)
		case !slices.Contains(t.stages, stage.name):
			t.unread[stage.name] = true
		}
		for _, file := range stage.files {
			s := t.stories[file.id]
			if s == nil {
				s = &story{id: file.id}
				t.stories[file.id] = s
			}
			if s.look != t.looks {
				s.look = t.looks
				s.places, s.before = s.before[:0], s.places
			}
			s.places = append(s.places, place{stage.name, file})
		}
	}
	n.changed = !slices.Equal(t.stages, names)
	t.stages = names
	return stood
}

// settle decides where a story stands that this look saw, takes up what its file says, and tells what is new.
func (s *story) settle(now time.Time, stood map[string]bool, n *news) {
	was, here := *s, s.choose()
	s.stage, s.gone = here.stage, time.Time{}
	s.takeFacts(here.file.facts, now, n)
	old := was.stage == "" && stood[here.stage]
	switch {
	case old:
		s.sinceMS = max(0, here.file.modified.UnixMilli())
	case was.stage != here.stage:
		s.sinceMS = max(0, now.UnixMilli())
		n.tell(feed.WorkItem{ItemID: s.id, Name: s.name(), Stage: here.stage, FromStage: was.stage})
	}
	n.changed = n.changed || was.stage != here.stage || was.facts != s.facts
	if reason := s.facts.mergeFailure; reason != "" && reason != was.facts.mergeFailure && !old {
		n.tell(feed.MergeFailure{StoryID: s.id, Name: s.name(), Reason: reason})
	}
	if reason := s.facts.blocked; reason != "" && reason != was.facts.blocked && !old {
		n.tell(feed.StoryBlocked{StoryID: s.id, Name: s.name(), Reason: reason})
	}
}

// choose picks the place that counts: the one modified last; on a tie one where the story was not before, else the
// one where it counted, else that of the latest stage.
func (s *story) choose() place {
	best := s.places[0]
	for _, p := range s.places[1:] {
		order := p.file.modified.Compare(best.file.modified)
		if order > 0 || order == 0 && s.rank(p) >= s.rank(best) {
			best = p
		}
	}
	return best
}

func (s *story) rank(p place) int {
	switch {
	case !slices.ContainsFunc(s.before, func(b place) bool { return b.stage == p.stage }):
		return 2
	case p.stage == s.stage:
		return 1
	}
	return 0
}

// takeFacts takes up what the file says. An unreadable one leaves what is known; so does a torn one, for as long as
// it may be in the middle of a save.
func (s *story) takeFacts(f facts, now time.Time, n *news) {
	switch {
	case f.state == unreadable:
	case f.state == whole:
		s.facts, s.torn = f, time.Time{}
	case s.torn.IsZero():
		s.torn = now
		n.lookAgain(now.Add(grace))
	case now.Sub(s.torn) < grace:
		n.lookAgain(s.torn.Add(grace))
	default:
		s.facts = facts{}
	}
}

// name is what the story is called.
func (s *story) name() string {
	if s.facts.name == "" {
		return s.id
	}
	return s.facts.name
}

func (n *news) tell(notification feed.Notification) {
	n.notifications = append(n.notifications, notification)
}

func (n *news) lookAgain(at time.Time) {
	if n.again.IsZero() || at.Before(n.again) {
		n.again = at
	}
}

// board returns every stage with the stories that count there, ordered by the number that their ids begin with.
func (t *tracker) board() []domain.Stage {
	stages := make([]domain.Stage, len(t.stages))
	index := map[string]int{}
	for i, name := range t.stages {
		stages[i] = domain.Stage{Name: name, Items: []domain.Item{}}
		index[name] = i
	}
	for _, s := range t.stories {
		if i, ok := index[s.stage]; ok { // it goes with its stage, if that was removed
			stages[i].Items = append(stages[i].Items, s.item())
		}
	}
	for _, stage := range stages {
		slices.SortFunc(stage.Items, func(a, b domain.Item) int { return compareNumbered(a.StoryID, b.StoryID) })
	}
	return stages
}

func (s *story) item() domain.Item {
	item := domain.Item{StoryID: s.id, StoryName: s.name(), SinceMS: s.sinceMS}
	if reason := s.facts.blocked; reason != "" {
		item.Blocked = &reason
	}
	if reason := s.facts.mergeFailure; reason != "" {
		item.MergeFailure = &reason
	}
	return item
}
