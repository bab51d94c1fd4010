package board

import (
	"slices"
	"time"

	"switchyard/internal/feed"
)

// grace is how long a story may be gone and count as moved when it comes back, and how long a story whose file is
// torn keeps what the file said before: an editor's save may look like either.
const grace = time.Second

// tracker turns successive scans of a board into notifications. It does no I/O and takes the time as a value.
type tracker struct {
	scans   int
	stages  []string
	stories map[string]*story
	// unread are stages that have not been readable since they appeared: what is in one when it can be read at last is
	// no news.
	unread map[string]bool
}

// changes are what a scan brought.
type changes struct {
	notifications []feed.Notification
	view          bool      // the board is not as it was
	rescan        time.Time // when to scan again though no file changes; zero for never
}

// update takes in a scan that ended at now. What the first one finds is where everything starts, and no news.
func (t *tracker) update(now time.Time, stages []*stage) changes {
	if t.scans == 0 {
		t.stories, t.unread = map[string]*story{}, map[string]bool{}
	}
	t.scans++
	var c changes
	preexisting := t.enter(stages, &c)
	for _, stage := range stages {
		for _, file := range stage.files {
			if s := t.stories[file.id]; s.copies[0].file == file { // once for each story
				s.update(now, preexisting, &c)
			}
		}
	}
	t.forget(now, &c)
	return c
}

// enter notes where each story is, and returns the stages whose unknown stories were there before they could be read.
func (t *tracker) enter(stages []*stage, c *changes) (preexisting map[string]bool) {
	preexisting = map[string]bool{}
	var names []string
	for _, stage := range stages {
		names = append(names, stage.name)
		switch {
		case stage.err == nil:
			preexisting[stage.name] = t.scans == 1 || t.unread[stage.name]
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
			if s.scan != t.scans {
				s.scan = t.scans
				s.copies, s.previous = s.previous[:0], s.copies
			}
			s.copies = append(s.copies, fileCopy{stage.name, file})
		}
	}
	c.view = !slices.Equal(t.stages, names)
	t.stages = names
	return preexisting
}

// forget drops the stories that have been gone for longer than grace.
func (t *tracker) forget(now time.Time, c *changes) {
	for id, s := range t.stories {
		switch {
		case s.scan == t.scans:
		case s.gone.IsZero():
			s.gone = now
			c.rescanAt(now.Add(grace))
		case now.Sub(s.gone) >= grace:
			delete(t.stories, id)
			c.view = true
		default:
			c.rescanAt(s.gone.Add(grace))
		}
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

// board returns every stage with the stories that count there, ordered by the number that their ids begin with.
func (t *tracker) board() []Stage {
	stages := make([]Stage, len(t.stages))
	index := map[string]int{}
	for i, name := range t.stages {
		stages[i].Name = name
		index[name] = i
	}
	for _, s := range t.stories {
		if i, ok := index[s.stage]; ok { // it goes with its stage, if that was removed
			stages[i].Stories = append(stages[i].Stories, s.public())
		}
	}
	for _, stage := range stages {
		slices.SortFunc(stage.Stories, func(a, b Story) int { return compareNumbered(a.ID, b.ID) })
	}
	return stages
}
