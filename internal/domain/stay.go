package domain

import "time"

// Stay is the time that a story spent in a stage.
type Stay struct {
	Stage   string
	From    time.Time
	To      time.Time     // zero while it lasts
	Blocked time.Duration // how much of it the story was blocked; grows while that lasts
}

// NewStays reads a story's stays from its events, the oldest first. stage is where it is now, "" for none, and since when its
// project server says that it came there, which counts where the events do not know.
func NewStays(history []Event, stage string, since, now time.Time) []Stay {
	var stays []Stay
	var blocked time.Time // since when, zero while it is not
	leave := func(at time.Time) {
		if last := len(stays) - 1; last >= 0 && stays[last].To.IsZero() {
			stays[last].To = at
			if !blocked.IsZero() {
				stays[last].Blocked += at.Sub(blocked)
			}
		}
		blocked = time.Time{}
	}
	for _, e := range history {
		at := time.UnixMilli(e.TimestampMS)
		switch e.Type {
		case StageTransition:
			d := e.Details()
			leave(at)
			stays = append(stays, Stay{Stage: d.ToStage, From: at})
		case StoryBlocked:
			if blocked.IsZero() {
				blocked = at
			}
		}
	}
	switch last := len(stays) - 1; {
	case stage == "":
	case last < 0 || stays[last].Stage != stage:
		leave(since)
		stays = append(stays, Stay{Stage: stage, From: since})
	case !blocked.IsZero():
		stays[last].Blocked += now.Sub(blocked)
	}
	return stays
}
