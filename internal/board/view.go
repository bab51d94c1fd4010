package board

import (
	"strconv"
	"time"
)

// View is a consistent state of a board. It never changes: another state is another View.
type View struct {
	// Stages are in the order of their numbers, their stories in the order of the numbers that their ids begin with.
	Stages []Stage
	// Err says why the work directory cannot be read, and Stages are what was there before. It is nil when all is well.
	Err error
	// Version names this state: no other one of any board has it, not after a restart either.
	Version string

	replaced chan struct{} // closed when another state is there and what happened is recorded
}

// Replaced is closed once the board has another view and what led to it is recorded.
func (v *View) Replaced() <-chan struct{} { return v.replaced }

// show replaces the view. It returns what wakes those who wait for that.
func (b *Board) show(stages []Stage, err error) (wake func()) {
	b.views++
	next := &View{Stages: stages, Err: err, Version: b.instance + "-" + strconv.Itoa(b.views), replaced: make(chan struct{})}
	old := b.view.Swap(next)
	return func() {
		if old != nil {
			close(old.replaced)
		}
	}
}

// Stage is a stage of a board with its stories.
type Stage struct {
	Name    string
	Stories []Story
}

// Story is a story as the board shows it.
type Story struct {
	ID           string
	Name         string
	Blocked      string    // the reason, "" when it is not blocked
	MergeFailure string    // the reason, "" when there is none
	Since        time.Time // when it was first seen in its stage; at the start the time of modification
	BlockedSince time.Time // when it was first seen to be blocked, likewise; zero while it is not
}

// Find returns the story with that id, and its stage.
func (v *View) Find(id string) (story Story, stage string, found bool) {
	for i := range v.Stages {
		for j := range v.Stages[i].Stories {
			if v.Stages[i].Stories[j].ID == id {
				return v.Stages[i].Stories[j], v.Stages[i].Name, true
			}
		}
	}
	return Story{}, "", false
}
