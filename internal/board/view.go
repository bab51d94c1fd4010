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
	Faults []domain.Fault // the first of them, sorted by path
	// CheckedOut are the stories that are where they are, or are missing, because another commit was checked out.
	CheckedOut []string
	// Err says why the work directory cannot be read; Stages are then the last that were. It is nil otherwise.
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
	Fixed   string // why no story is moved to or from here but by the board's own tool, "" if it can be moved
	Other   bool   // its status is none of the board's own: no story is moved here
	Stories []Story
}

type Story struct {
	ID           string
	Name         string
	Blocked      string          // the reason, "" when it is not blocked
	MergeFailure string          // the reason, "" for none
	Criteria     domain.Criteria // zero for none
	Fault        string          // why its file cannot be read, "" if it can: everything else is from before
	DependsOn    []string        // the ids of stories, or tasks in them, that come before it
	WaitsFor     []string        // those of them that are not done
	Version      string          // as in Details, when it was last read
	Since        time.Time       // when it was first seen in its stage; for the first scan, when its file was modified
	BlockedSince time.Time       // when it was first seen to be blocked, likewise; zero while it is not
	// Worktree and Branch say where it stands, "" for the board's own work tree.
	Worktree, Branch string

	modified time.Time
}

func (v *View) has(stage string) bool {
	return slices.ContainsFunc(v.Stages, func(s Stage) bool { return s.Name == stage })
}

// Find returns a story with its stage. An id whose bytes are no UTF-8, of a file's name, is also found as JSON has it.
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
