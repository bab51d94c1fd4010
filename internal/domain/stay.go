package domain

import "time"

// Stay is the time that a story spent in a stage.
type Stay struct {
	Project string
	StoryID string
	// Number identifies a stay among those of its story. It increases from one to the next.
	Number int64
	Stage  string    // "" if unknown
	From   time.Time // zero if unknown
	To     time.Time // zero while the story is there
	Next   string    // the stage that it left for; "" if it left the board, or while it is there
	// Shown means that only a pipeline has shown the stay. An event that says more replaces it.
	Shown bool
	// Blocked is how long it was blocked there, not counting a current block. BlockedSince and MergeFailedSince are when a current
	// block or merge failure began, perhaps in an earlier stage.
	Blocked          time.Duration
	BlockedSince     time.Time
	MergeFailedSince time.Time
}

// BlockedFor returns how long the story has been blocked in this stay up to now.
func (s Stay) BlockedFor(now time.Time) time.Duration {
	if s.BlockedSince.IsZero() || !s.To.IsZero() {
		return s.Blocked
	}
	return s.Blocked + max(0, now.Sub(later(s.From, s.BlockedSince)))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// StayChanges are the changes of stays and stories up to an event.
type StayChanges struct {
	Save    []Stay
	Drop    []Stay     // only project, story and number are set
	Stories []StoryRef // names from pipelines
	UpTo    int64      // the event's id
	// Token is the leader's fencing token, 0 if none is needed.
	Token int64
	// ForgetMoves means that the stored pieces of moves lack some of these changes.
	ForgetMoves bool
}
