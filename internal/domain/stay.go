package domain

import "time"

// Stay is the time that a story spent in a stage.
type Stay struct {
	Project string
	StoryID string
	// Number tells the stays of a story apart and grows from one to the next.
	Number int64
	Stage  string    // "" while it is not known
	From   time.Time // zero where the arrival is not known
	To     time.Time // zero while the story is there
	Next   string    // the stage that it left for; "" when it left the board, or while it is there
	// Shown says that only a pipeline showed it; an event that tells more takes its place.
	Shown bool
	// Blocked is how long it was blocked there, without a block that lasts. BlockedSince and MergeFailedSince are when what
	// lasts began, maybe in an earlier stage.
	Blocked          time.Duration
	BlockedSince     time.Time
	MergeFailedSince time.Time
}

// BlockedFor returns how long the story was blocked in this stay until now.
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
	Drop    []Stay     // of which project, story and number count
	Stories []StoryRef // that pipelines showed
	UpTo    int64      // the event's id
	// Arrivals are the ids of told arrivals that these changes include.
	Arrivals []int64
	// ForgetMoves says that the moves that are stored in one piece miss some of these.
	ForgetMoves bool
}
