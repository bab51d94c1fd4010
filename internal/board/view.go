package board

import "time"

// View is a consistent state of a board. It is immutable.
type View struct {
	// Stages are ordered by their numbers, and their stories by the numbers that their ids begin with.
	Stages []Stage
	// Err says why the work directory cannot be read; Stages are then the last that were. It is nil otherwise.
	Err error
	// Version identifies this state. No other state of any board has the same one, even after a restart.
	Version string

	replaced chan struct{} // closed when there is a newer view and its notifications are recorded
}

// Replaced is closed once the board has a newer view and its notifications are recorded.
func (v *View) Replaced() <-chan struct{} { return v.replaced }

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
	MergeFailure string    // the reason, "" for none
	Since        time.Time // when it was first seen in its stage; for the first scan, when its file was modified
	BlockedSince time.Time // when it was first seen to be blocked, likewise; zero while it is not
}

// Find returns the story with that id and its stage, false if there is none.
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
