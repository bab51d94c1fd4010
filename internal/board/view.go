package board

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"switchyard/internal/domain"
)

// View is an immutable, consistent state of a board.
type View struct {
	// Stages are ordered by their numbers, and their stories by the numbers that their ids begin with.
	Stages []Stage
	Faults []domain.Fault // sorted by path, up to a limit
	// CheckedOut are the stories that are where they are, or missing, because another commit was checked out.
	CheckedOut []string
	// Err says why the work directory cannot be read; Stages are then the last that could be.
	Err error
	// Version identifies this state. No other state of any board has the same one, even after a restart.
	Version string

	replaced chan struct{} // closed when there is a newer view and its notifications are recorded
}

// Replaced is closed once the board has a newer view and its notifications are recorded.
func (v *View) Replaced() <-chan struct{} { return v.replaced }

type Stage struct {
	Name    string
	Label   string // the board's own word, "" if it has none
	Fixed   string // why only the board's own tool moves stories to or from here, "" if they can be moved
	Other   bool   // its status is not one of the board's own: no story can be moved here
	Stories []Story
}

type Story struct {
	ID           string
	Name         string
	Blocked      string          // the reason, "" when it is not blocked
	MergeFailure string          // the reason, "" for none
	Criteria     domain.Criteria // zero for none
	Fault        string          // why its file cannot be read, "" if it can: everything else is from before
	DependsOn    []string        // the ids of stories, or of tasks in them, that come before it
	WaitsFor     []string        // the unfinished ones among them
	Version      string          // as in Details, from when it was last read
	Since        time.Time       // when it was first seen in its stage; for the first scan, when its file was modified
	BlockedSince time.Time       // when it was first seen to be blocked, likewise; zero if it is not
	// Worktree and Branch say where it stands, "" for the board's own work tree.
	Worktree, Branch string

	modified time.Time
}

func (v *View) has(stage string) bool {
	return slices.ContainsFunc(v.Stages, func(s Stage) bool { return s.Name == stage })
}

// Find returns a story with its stage. An id from a file name that is not valid UTF-8 is also found as JSON has it.
func (v *View) Find(id string) (story Story, stage string, found bool) {
	isShown := strings.ContainsRune(id, utf8.RuneError)
	for i := range v.Stages {
		for j := range v.Stages[i].Stories {
			if own := v.Stages[i].Stories[j].ID; own == id || isShown && string([]rune(own)) == id {
				return v.Stages[i].Stories[j], v.Stages[i].Name, true
			}
		}
	}
	return Story{}, "", false
}
