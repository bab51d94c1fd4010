package feed

import (
	"bytes"
	"encoding/json"

	"switchyard/internal/domain"
)

// Notification is something that happened on a board: a WorkItem, a StoryBlocked or a MergeFailure.
type Notification interface {
	// event returns the event to record at stamp, nil for none.
	event(stamp int64) any
}

// WorkItem says that an item appeared in Stage. FromStage is its stage before, "" for a new item.
type WorkItem struct {
	ItemID    string
	Name      string
	Stage     string
	FromStage string
}

// StoryBlocked says that an item is blocked, or is now blocked for another reason.
type StoryBlocked struct {
	StoryID string
	Name    string
	Reason  string
}

// MergeFailure says that merging an item's work failed, or is now failing for another reason.
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

// encoder encodes events as JSON in a buffer that it reuses.
type encoder struct{ buffer bytes.Buffer }

// encode returns the event's JSON followed by a comma, valid until the next call.
func (e *encoder) encode(event any) []byte {
	e.buffer.Reset()
	encoder := json.NewEncoder(&e.buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(event); err != nil { // only a programming error can get here
		panic(err)
	}
	text := e.buffer.Bytes()
	text[len(text)-1] = ',' // in place of Encode's line break
	return text
}
