package feed

import (
	"bytes"
	"encoding/json"

	"switchyard/internal/domain"
)

// Notification is something that happened on a board: a WorkItem or Trouble.
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

// Trouble says that a story has trouble, or now has it for another reason: a StoryBlocked or a MergeFailure. Its fields
// are in the order in which they are written.
type Trouble struct {
	Type        domain.EventType `json:"type"`
	StoryID     string           `json:"story_id"`
	Name        string           `json:"story_name"`
	Reason      string           `json:"reason"`
	TimestampMS int64            `json:"timestamp_ms"` // set when it is recorded
}

// transition is the event of a WorkItem; its fields are in the order in which they are written.
type transition struct {
	Type        domain.EventType `json:"type"`
	StoryID     string           `json:"story_id"`
	StoryName   string           `json:"story_name"`
	FromStage   string           `json:"from_stage"`
	ToStage     string           `json:"to_stage"`
	TimestampMS int64            `json:"timestamp_ms"`
}

func (n WorkItem) event(stamp int64) any {
	if n.FromStage == "" {
		return nil // only moves between stages are events
	}
	return transition{domain.StageTransition, n.ItemID, n.Name, n.FromStage, n.Stage, stamp}
}

func (n Trouble) event(stamp int64) any {
	n.TimestampMS = stamp
	return n
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
