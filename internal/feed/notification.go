package feed

import (
	"bytes"
	"encoding/json"

	"switchyard/internal/domain"
)

// Notification is something that happened on a board: a WorkItem, a StoryBlocked or a MergeFailure.
type Notification interface {
	// event is what is recorded of it at stamp, nil for nothing.
	event(stamp int64) any
}

// WorkItem says that an item appeared in Stage. FromStage is where it was before, "" for a new one.
type WorkItem struct {
	ItemID    string
	Name      string
	Stage     string
	FromStage string
}

// StoryBlocked says that an item is blocked, or blocked for another reason than before.
type StoryBlocked struct {
	StoryID string
	Name    string
	Reason  string
}

// MergeFailure says that merging an item's work failed, or failed for another reason than before.
type MergeFailure struct {
	StoryID string
	Name    string
	Reason  string
}

// transition and trouble are the two forms of an event; their fields are in the order in which they are written.
type transition struct {
	Type        domain.EventType `json:"type"`
	StoryID     string           `json:"story_id"`
	StoryName   string           `json:"story_name"`
	FromStage   string           `json:"from_stage"`
	ToStage     string           `json:"to_stage"`
	TimestampMS int64            `json:"timestamp_ms"`
}

type trouble struct {
	Type        domain.EventType `json:"type"`
	StoryID     string           `json:"story_id"`
	StoryName   string           `json:"story_name"`
	Reason      string           `json:"reason"`
	TimestampMS int64            `json:"timestamp_ms"`
}

func (n WorkItem) event(stamp int64) any {
	if n.FromStage == "" {
		return nil // only moves between stages are events
	}
	return transition{domain.StageTransition, n.ItemID, n.Name, n.FromStage, n.Stage, stamp}
}

func (n StoryBlocked) event(stamp int64) any {
	return trouble{domain.StoryBlocked, n.StoryID, n.Name, n.Reason, stamp}
}

func (n MergeFailure) event(stamp int64) any {
	return trouble{domain.MergeFailure, n.StoryID, n.Name, n.Reason, stamp}
}

// encoder turns events into JSON in a buffer of its own.
type encoder struct{ buffer bytes.Buffer }

// encode returns the event's JSON with a comma behind it, valid until the next call.
func (e *encoder) encode(event any) []byte {
	e.buffer.Reset()
	encoder := json.NewEncoder(&e.buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(event); err != nil { // only a programming mistake can get here
		panic(err)
	}
	text := e.buffer.Bytes()
	text[len(text)-1] = ',' // where Encode puts a line break
	return text
}
