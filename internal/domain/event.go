package domain

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"
)

type EventType string

// StageTransition, MergeFailure and StoryBlocked come from project servers. FeedGap is the gateway's own record for
// events that a project's buffer dropped between two reads, and StoryReviewed that of a Review; records of these types
// from a project become foreign ones. EventKinds has what they mean.
const (
	StageTransition      EventType = "stage_transition"
	MergeFailure         EventType = "merge_failure"
	StoryBlocked         EventType = "story_blocked"
	StoryReviewed        EventType = "story_reviewed"
	FeedGap              EventType = "feed_gap"
	ForeignFeedGap       EventType = "foreign_feed_gap"
	ForeignStoryReviewed EventType = "foreign_story_reviewed"
)

// Finished is used beside the event types, for moves that finish a story.
const Finished EventType = "finished"

// MaxClockSkew is how far a timestamp may be ahead of the gateway's clock. Later ones do not move reading positions.
const MaxClockSkew = 24 * time.Hour

type Record struct {
	Type EventType
	At   time.Time // its timestamp_ms, from 0 to 2^63-1, far beyond year 9999
	// JSON is the record as an object with sorted keys, without spaces, with types in this package's form, and without
	// the keys that the gateway adds, so that equal records are equal bytes.
	JSON json.RawMessage
}

// Event is a record of the merged stream.
type Event struct {
	ID         int64 // strictly increasing in the whole stream
	Project    string
	ReceivedAt time.Time
	Record
}

// EventDetails are the fields of the known event types, for display. Its texts are cut when a record is read.
type EventDetails struct {
	StoryID   string `json:"story_id"`
	StoryName string `json:"story_name"`
	FromStage string `json:"from_stage"`
	ToStage   string `json:"to_stage"`
	Reason    string `json:"reason"`
	Missed    int64  `json:"missed"`
	Verdict   string `json:"verdict"`
	Head      string `json:"head"`
	By        string `json:"by"`
}

// Details returns the known fields of the record. Fields that are missing or of another type are empty.
func (r Record) Details() EventDetails {
	var d EventDetails
	// A field of the wrong type stays empty: Unmarshal continues after it.
	_ = json.Unmarshal(r.JSON, &d)
	return d
}

// AppendJSON appends the event in the API's form: the record with id, project and received_at_ms added.
func (e Event) AppendJSON(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendInt(b, e.ID, 10)
	b = append(b, `,"project":`...)
	name, _ := json.Marshal(e.Project) // a string always encodes
	b = append(b, name...)
	b = append(b, `,"received_at_ms":`...)
	b = strconv.AppendInt(b, e.ReceivedAt.UnixMilli(), 10)
	if len(e.JSON) > len("{}") {
		b = append(b, ',')
	}
	return append(b, e.JSON[1:]...)
}

func (e Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil), nil }

var (
	ErrNoObject = errors.New("record is not a JSON object")
	ErrNoStamp  = errors.New("record has no timestamp_ms from 0 to 2^63-1")
)

// ParseRecord parses a record of a feed. It accepts CamelCase type names, "kind" for "type", and unknown types. It
// returns ErrNoObject or ErrNoStamp for a record that cannot be kept.
func ParseRecord(raw json.RawMessage) (Record, error) {
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil || fields == nil {
		return Record{}, ErrNoObject
	}
	number, _ := fields["timestamp_ms"].(json.Number)
	stamp, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || stamp < 0 {
		return Record{}, ErrNoStamp
	}
	for _, ours := range []string{"id", "project", "received_at_ms"} {
		delete(fields, ours)
	}
	if _, has := fields["type"]; !has {
		if kind, has := fields["kind"]; has {
			fields["type"] = kind
			delete(fields, "kind")
		}
	}
	var kind EventType
	if name, ok := fields["type"].(string); ok {
		kind = parseEventType(name)
		fields["type"] = kind
	}
	if kind.Kind().OfStory {
		for known := range reflect.TypeFor[EventDetails]().Fields() {
			key := known.Tag.Get("json")
			switch text, isText := fields[key].(string); {
			case isText && key == "reason":
				fields[key] = CutReason(text)
			case isText:
				fields[key] = CutText(text)
			}
		}
	}
	kind = EventType(CutText(string(kind))) // limits what is stored for each type
	return Record{Type: kind, At: time.UnixMilli(stamp), JSON: EncodeJSON(fields)}, nil
}

// NewFeedGap returns the record for missed events. at is the time of the record that followed them.
func NewFeedGap(missed int64, at time.Time) Record {
	fields := map[string]any{"type": FeedGap, "missed": missed, "timestamp_ms": at.UnixMilli()}
	return Record{Type: FeedGap, At: time.UnixMilli(at.UnixMilli()), JSON: EncodeJSON(fields)}
}

// Signal is the colour and the sign that come with a word: clear, caution or stop, or none of them.
type Signal string

const (
	SignalClear   Signal = "clear"
	SignalCaution Signal = "caution"
	SignalStop    Signal = "stop"
	SignalNone    Signal = "none"
)

// EventKind is what pages, chat, searches and metrics need to know about an event type.
type EventKind struct {
	Type    EventType
	Foreign string // how other implementations spell it
	Choice  string // in the list of types to choose from, and in digests; "" to leave it out
	Plural  string // in the rules of targets; "" for the type's name
	Signal  Signal
	Alert   AlertKind // the one that the event begins, "" for none
	OfStory bool      // it is about a story: its texts are searched, and cut if it comes from a project server
	// Describe is the event in words; its stages are already in the words of their board, as given by
	// StageWords.Describe.
	Describe func(EventDetails) string
}

// EventKinds are the types with a meaning. All others are kept unchanged, and shown by their name.
var EventKinds = []EventKind{
	{
		Type: StageTransition, Foreign: "StageTransition", Choice: "moved", Plural: "moves",
		Signal: SignalNone, OfStory: true,
		Describe: func(d EventDetails) string { return d.FromStage + " → " + d.ToStage },
	},
	{
		Type: StoryBlocked, Foreign: "StoryBlocked", Choice: "blocked", Plural: "blocks",
		Signal: SignalStop, OfStory: true, Alert: AlertBlocked, Describe: says("blocked"),
	},
	{
		Type: MergeFailure, Foreign: "MergeFailure", Choice: "merge failed", Plural: "failed merges",
		Signal: SignalCaution, OfStory: true, Alert: AlertMerge, Describe: says("merge failed"),
	},
	{
		Type: StoryReviewed, Choice: "reviewed", Plural: "reviews", Signal: SignalNone, OfStory: true,
		Describe: func(d EventDetails) string { return Verdict(d.Verdict).Word() + " by " + d.By },
	},
	{
		Type: FeedGap, Choice: "events dropped", Plural: "gaps", Signal: SignalCaution,
		Describe: func(d EventDetails) string {
			return Count(d.Missed, "event was", "events were") + " dropped before the gateway could read them"
		},
	},
	{
		Type: ForeignFeedGap, Foreign: string(FeedGap), Signal: SignalCaution,
		Describe: says("the project server reports that events before this one are missing"),
	},
	{
		Type: ForeignStoryReviewed, Foreign: string(StoryReviewed), Signal: SignalNone, OfStory: true,
		Describe: says("the project server reports a review"),
	},
}

func says(text string) func(EventDetails) string {
	return func(EventDetails) string { return text }
}

// Kind returns the row of EventKinds for a type, or one that shows its name.
func (t EventType) Kind() EventKind {
	for _, k := range EventKinds {
		if k.Type == t {
			return k
		}
	}
	return EventKind{Type: t, Signal: SignalNone, Describe: says(strings.ReplaceAll(string(t), "_", " "))}
}

// parseEventType returns the type that a project server means by name. Some are reserved for the gateway.
func parseEventType(name string) EventType {
	for _, k := range EventKinds {
		if k.Foreign == name && name != "" {
			return k.Type
		}
	}
	return EventType(name)
}
