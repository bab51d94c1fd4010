package board

import (
	"slices"
	"time"

	"switchyard/internal/feed"
)

// grace is how long a story may be gone and still count as moved when it comes back, and how long a story whose file is
// torn keeps its facts: an editor's save may cause either.
const grace = time.Second

// tracker turns successive scans of a board into notifications. It does no I/O and takes the time as a value. The cost
// of a scan depends on the stages that it read, not on the size of the board.
type tracker struct {
	scans   int
	stages  []string
	stories map[string]*story
	inStage map[string][]*story // the stories with a file in a stage, in the order of its files
	gone    map[string]*story   // in no stage, for no longer than grace
	torn    map[string]*story   // whose files are torn; after grace they count as they are
	// unread holds stages that have not been readable since they appeared: stories found in one when it can first be read
	// cause no notifications.
	unread map[string]bool
	shown  map[string]Stage // the stages as board returned them, without those that have changed since
}

// changes is the result of a scan.
type changes struct {
	notifications []feed.Notification
	view          bool      // the board has changed
	rescan        time.Time // when to scan again even if no file changes; zero for never
}

// update applies a scan that ended at now. The first scan is the starting point and causes no notifications.
func (t *tracker) update(now time.Time, stages []*stage) changes {
	if t.scans == 0 {
		t.stories, t.inStage, t.unread = map[string]*story{}, map[string][]*story{}, map[string]bool{}
		t.gone, t.torn, t.shown = map[string]*story{}, map[string]*story{}, map[string]Stage{}
	}
	t.scans++
	var c changes
	preexisting := t.enterStages(stages, &c)
	t.leave(stages)
	t.enter(stages)
	for _, stage := range stages {
		if stage.skipped {
			continue
		}
		for _, s := range t.inStage[stage.name] {
			t.updateStory(s, now, preexisting, &c)
		}
	}
	for _, s := range t.torn {
		if len(s.copies) > 0 {
			t.touch(s)
			t.updateStory(s, now, preexisting, &c)
		}
	}
	t.forget(now, &c)
	return c
}

// updateStory updates a story once in each scan.
func (t *tracker) updateStory(s *story, now time.Time, preexisting map[string]bool, c *changes) {
	if s.updated == t.scans {
		return
	}
	s.updated = t.scans
	was := s.stage
	if s.update(now, preexisting, c) {
		c.view = true
		delete(t.shown, was)
		delete(t.shown, s.stage)
	}
	delete(t.gone, s.id)
	delete(t.torn, s.id)
	if !s.torn.IsZero() {
		t.torn[s.id] = s
	}
}

// enterStages takes over the list of stages, and returns those readable for the first time, whose stories existed
// before.
func (t *tracker) enterStages(stages []*stage, c *changes) (preexisting map[string]bool) {
	preexisting = map[string]bool{}
	var names []string
	for _, stage := range stages {
		names = append(names, stage.name)
		switch {
		case stage.skipped:
		case stage.err == nil:
			preexisting[stage.name] = t.scans == 1 || t.unread[stage.name]
			delete(t.unread, stage.name)
		case !slices.Contains(t.stages, stage.name):
			t.unread[stage.name] = true
		}
	}
	if !slices.Equal(t.stages, names) {
		c.view = true
		clear(t.shown)
	}
	t.stages = names
	return preexisting
}

// leave removes the files of the stages that were read, and of those that are gone, from their stories.
func (t *tracker) leave(stages []*stage) {
	skipped := map[string]bool{}
	for _, stage := range stages {
		skipped[stage.name] = stage.skipped
	}
	for name, stories := range t.inStage {
		if skipped[name] {
			continue
		}
		for _, s := range stories {
			t.touch(s)
			s.copies = slices.DeleteFunc(s.copies, func(c fileCopy) bool { return c.stage == name })
			if len(s.copies) == 0 {
				t.gone[s.id] = s
			}
		}
		delete(t.inStage, name)
	}
}

// enter adds the files of the stages that were read to their stories.
func (t *tracker) enter(stages []*stage) {
	for number, stage := range stages {
		if stage.skipped {
			continue
		}
		list := make([]*story, len(stage.files))
		for i, file := range stage.files {
			s := t.stories[file.id]
			if s == nil {
				s = &story{id: file.id}
				t.stories[file.id] = s
			}
			t.touch(s)
			s.copies = append(s.copies, fileCopy{stage.name, number, file})
			list[i] = s
		}
		t.inStage[stage.name] = list
	}
}

// touch saves a story's copies from before this scan.
func (t *tracker) touch(s *story) {
	if s.scan == t.scans {
		return
	}
	s.scan = t.scans
	if len(s.copies) > 0 {
		s.previous = append(s.previous[:0], s.copies...)
	}
}

// forget removes the stories that have been gone for longer than grace.
func (t *tracker) forget(now time.Time, c *changes) {
	for id, s := range t.gone {
		if s.gone.IsZero() {
			s.gone = now
		}
		if now.Sub(s.gone) < grace {
			c.rescanAt(s.gone.Add(grace))
			continue
		}
		delete(t.gone, id)
		delete(t.torn, id)
		delete(t.stories, id)
		delete(t.shown, s.stage)
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
	gone := map[string][]*story{}
	for _, s := range t.gone {
		gone[s.stage] = append(gone[s.stage], s)
	}
	stages := make([]Stage, len(t.stages))
	for i, name := range t.stages {
		if shown, ok := t.shown[name]; ok {
			stages[i] = shown
			continue
		}
		stages[i].Name = name
		for _, list := range [][]*story{t.inStage[name], gone[name]} {
			for _, s := range list {
				if s.stage == name {
					stages[i].Stories = append(stages[i].Stories, s.public())
				}
			}
		}
		slices.SortFunc(stages[i].Stories, func(a, b Story) int { return compareNumbered(a.ID, b.ID) })
		t.shown[name] = stages[i]
	}
	return stages
}
