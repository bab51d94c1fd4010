package domain

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Visit is the time that a story spent in a stage.
type Visit struct {
	Project string
	StoryID string
	// Number identifies a visit among those of its story and orders them: the time at which it began, in Unix
	// milliseconds, or more.
	Number int64
	Stage  string    // "" if unknown
	From   time.Time // zero if unknown
	To     time.Time // zero while the story is there
	Next   string    // the stage that it left for; "" if it left the board, or while it is there
	Source VisitSource
	// Blocked is how long it was blocked there, not counting a current block. BlockedSince and MergeFailedSince are when
	// a current block or merge failure began, perhaps in an earlier stage.
	Blocked          time.Duration
	BlockedSince     time.Time
	MergeFailedSince time.Time
	// EventAt is when the last event about the story was received, zero if a later visit has it. What was asked for earlier
	// may be older than that.
	EventAt time.Time
}

// VisitSource is what a visit is known from.
type VisitSource string

const (
	FromEvent VisitSource = ""
	FromBoard VisitSource = "board" // only a pipeline has shown it; an event that says more corrects it
)

// BlockedFor returns how long the story has been blocked in this visit up to now.
func (v Visit) BlockedFor(now time.Time) time.Duration {
	if v.BlockedSince.IsZero() || !v.To.IsZero() {
		return v.Blocked
	}
	return v.Blocked + max(0, now.Sub(later(v.From, v.BlockedSince)))
}

// leave ends the visit. If the clock was set back since its beginning, that is unknown.
func (v *Visit) leave(at time.Time, next string) {
	if at.Before(v.From) {
		v.From = time.Time{}
	}
	v.To, v.Next = at, next
	if !v.BlockedSince.IsZero() {
		v.Blocked += max(0, at.Sub(later(v.From, v.BlockedSince)))
	}
	v.BlockedSince, v.MergeFailedSince = time.Time{}, time.Time{}
	if next != "" {
		v.EventAt = time.Time{}
	}
}

// reopen undoes leave, for a story that has been blocked since since, or not if that is zero.
func (v *Visit) reopen(since time.Time) {
	if !since.IsZero() {
		v.Blocked = max(0, v.Blocked-max(0, v.To.Sub(later(v.From, since))))
	}
	v.To, v.Next, v.BlockedSince = time.Time{}, "", since
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// StoryKey identifies a story.
type StoryKey struct{ Project, ID string }

// maxVisitText is the longest story id and name of a stage, in bytes, of which visits are kept: every database can
// index that.
const maxVisitText = 500

func canVisit(text string) bool {
	return len(text) <= maxVisitText && utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

// VisitKey returns the story whose visits a record changes, false if there is none.
func VisitKey(project string, r Record) (key StoryKey, ok bool) {
	switch r.Type {
	case StageTransition, StoryBlocked, MergeFailure:
		key = StoryKey{project, r.Details().StoryID}
	}
	return key, key.ID != "" && canVisit(key.ID)
}

// Observation is what a pipeline shows of some stories.
type Observation struct {
	Project string
	Seen    []Sighting
	Asked   time.Time // when its fetch began
	Now     time.Time
}

// Sighting is a story as a pipeline shows it.
type Sighting struct {
	StoryID, StoryName   string
	Stage                string // "" if it is not on the board
	Since                time.Time
	Blocked, MergeFailed bool
}
