package domain

import (
	"cmp"
	"iter"
)

// StoryFlow is what the visits of a story say, in Unix milliseconds; 0 is unknown or not. It is valid until the next
// story.
type StoryFlow struct {
	StoryID                      string
	FirstMove, Started, Finished int64
	// Arrived is when it was first in a stage of work, or passed them all on its way to being finished.
	Arrived int64
	Working bool         // it is in a stage of work
	Reached []StageEntry // when it came further than before
	Stays   []Stay
}

// StageEntry is when a story came into a stage of work, given by its position on the board.
type StageEntry struct {
	MS    int64
	Stage int
}

// Stay is a visit whose stage's position is known, in Unix milliseconds.
type Stay struct {
	Stage    string
	At       int
	From, To int64 // From is 0 if unknown, To while it lasts
}

// follower follows stories on their course.
type follower struct {
	Workflow
	visits *ProjectVisits
	at     []int // the positions of the stages of visits
	story  StoryFlow
}

// Follow yields the stories that were on their way at or after a time.
func (p *ProjectVisits) Follow(c Workflow, since int64) iter.Seq[*StoryFlow] {
	return func(yield func(*StoryFlow) bool) {
		f := follower{Workflow: c, visits: p}
		for _, name := range p.stages {
			f.at = append(f.at, c.At(name))
		}
		for _, story := range p.stories {
			last := story.visits[len(story.visits)-1]
			if last.to != 0 && last.to < since {
				continue
			}
			if f.follow(story); !yield(&f.story) {
				return
			}
		}
	}
}

func (f *follower) follow(story visitedStory) {
	f.story = StoryFlow{StoryID: story.id, Reached: f.story.Reached[:0], Stays: f.story.Stays[:0]}
	s := &f.story
	for i, v := range story.visits {
		at := f.at[v.stage]
		if v.git && v.from > 0 && (i == 0 || story.visits[i-1].to != v.from) {
			f.move(v.from, -1, at)
		}
		if at >= 0 {
			s.Stays = append(s.Stays, Stay{f.visits.stages[v.stage], at, v.from, v.to})
		}
		if at >= 0 && at < f.Done {
			s.Finished = 0
		}
		if v.next > 0 {
			f.move(v.to, at, f.at[v.next-1])
		}
		s.Working = v.to == 0 && f.IsWork(at)
	}
	s.Started = cmp.Or(s.Started, s.FirstMove)
	if s.Finished > 0 {
		s.Arrived = s.Started
	}
}

func (f *follower) move(ms int64, from, to int) {
	s := &f.story
	s.FirstMove = cmp.Or(s.FirstMove, ms)
	if to > f.Waiting && s.Started == 0 {
		s.Started = ms
	}
	if f.IsWork(to) {
		s.Arrived = cmp.Or(s.Arrived, ms)
		if n := len(s.Reached); n == 0 {
			s.Reached = append(s.Reached, StageEntry{ms, to})
		} else if last := s.Reached[n-1]; to > last.Stage {
			s.Reached = append(s.Reached, StageEntry{max(ms, last.MS), to}) // clocks may be wrong
		}
	}
	switch {
	case f.Finishes(from, to, s.Finished > 0):
		s.Finished = ms
	case to >= 0 && to < f.Done:
		s.Finished = 0
	}
}
