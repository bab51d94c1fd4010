package board

import (
	"slices"
	"time"

	"switchyard/internal/feed"
)

// grace is how long a story may be gone and still count as moved when it comes back, and how long a story with a torn
// file keeps its facts: an editor's save may cause either.
const grace = time.Second

// tracker turns successive scans of a board into notifications. It does no I/O and takes the time as a value.
type tracker struct {
	scans   int
	stages  []*stage // of the last scan
	stories map[string]*story
	// unread holds stages that have not been readable since they appeared: stories found in one when it is first read
	// cause no notifications.
	unread map[string]bool
	// checkout says that the next scan finds the result of a checkout, which is no news.
	checkout bool
	// inHead reports whether the commit that is checked out has a file; nil without git.
	inHead func(stage, id string) bool
	// failure returns why a story's last merge failed if its file does not say so; nil for boards without.
	failure func(id string) string
	// checkedOut are the stories that a checkout has placed or removed, sorted: board finds them.
	checkedOut []string
}

type changes struct {
	notifications []feed.Notification
	view          bool      // the board has changed
	rescan        time.Time // when to scan again even if no file changes; zero for never
}

// update applies a scan that ended at now. The first scan is the starting point and causes no notifications.
func (t *tracker) update(now time.Time, stages []*stage) changes {
	var c changes
	preexisting := t.enterStages(stages, &c)
	t.scans++
	for number, stage := range stages {
		for _, file := range stage.files {
			if file.story == nil {
				if t.stories[file.id] == nil {
					t.stories[file.id] = &story{id: file.id}
				}
				file.story = t.stories[file.id]
			}
			s := file.story
			if s.scan != t.scans {
				s.scan = t.scans
				s.previous, s.copies = s.copies, s.previous[:0]
			}
			s.copies = append(s.copies, fileCopy{stage.name, stage.settled || t.checkout, number, file})
		}
	}
	found := 0
	for _, stage := range stages {
		for _, file := range stage.files {
			if s := file.story; s.copies[0].file == file { // once per story
				found++
				changed := s.update(now, preexisting, t, &c)
				c.view = c.view || changed
			}
		}
	}
	if found < len(t.stories) {
		t.forget(now, &c)
	}
	return c
}

// enterStages takes over the list of stages, and returns those readable for the first time, whose stories existed
// before.
func (t *tracker) enterStages(stages []*stage, c *changes) (preexisting map[string]bool) {
	if t.scans == 0 {
		t.stories, t.unread = map[string]*story{}, map[string]bool{}
	}
	isNamed := func(a, b *stage) bool { return a.name == b.name && a.label == b.label && a.fixed == b.fixed }
	preexisting = map[string]bool{}
	for _, st := range stages {
		switch {
		case st.err == nil:
			preexisting[st.name] = t.scans == 0 || t.unread[st.name] || st.settled || t.checkout
			delete(t.unread, st.name)
		case !slices.ContainsFunc(t.stages, func(known *stage) bool { return isNamed(known, st) }):
			t.unread[st.name] = true
		}
	}
	c.view = !slices.EqualFunc(t.stages, stages, isNamed)
	t.stages = stages
	return preexisting
}

func (t *tracker) forget(now time.Time, c *changes) {
	for id, s := range t.stories {
		if s.scan == t.scans {
			continue
		}
		if s.gone.IsZero() {
			if s.gone = now; t.checkout {
				was := *s
				s.stage, s.facts, c.view = "", facts{}, true
				s.remember(was, true)
			}
		}
		switch {
		case s.stage == "" && s.stood != nil:
			continue
		case s.stage != "" && now.Sub(s.gone) < grace:
			c.rescanAt(s.gone.Add(grace))
			continue
		}
		delete(t.stories, id)
		c.view = true
	}
}

func (c *changes) notify(notification feed.Notification) {
	c.notifications = append(c.notifications, notification)
}

func (c *changes) rescanAt(at time.Time) {
	if c.rescan.IsZero() || at.Before(c.rescan) {
		c.rescan = at
	}
}

// board returns every stage with the stories that count there, ordered by compareNumbered.
func (t *tracker) board() []Stage {
	gone := map[string][]Story{}
	t.checkedOut = nil
	for _, s := range t.stories {
		if s.stood != nil {
			t.checkedOut = append(t.checkedOut, s.id)
		}
		if s.scan != t.scans {
			gone[s.stage] = append(gone[s.stage], s.public())
		}
	}
	slices.Sort(t.checkedOut)
	stages := make([]Stage, len(t.stages))
	for i, stage := range t.stages {
		stories := make([]Story, 0, len(stage.files))
		for _, file := range stage.files {
			if s := file.story; s.stage == stage.name {
				stories = append(stories, s.public())
			}
		}
		if missing := gone[stage.name]; len(missing) > 0 {
			stories = append(stories, missing...)
			slices.SortFunc(stories, func(a, b Story) int { return compareNumbered(a.ID, b.ID) })
		}
		stages[i] = Stage{stage.name, stage.label, stage.fixed, stage.other, stories}
	}
	return stages
}
