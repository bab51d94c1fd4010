package domain

import "strings"

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
	Signal  Signal
	Alert   AlertKind // that the event begins, "" for none
	OfStory bool      // it comes from a project server and is about a story: its texts are cut and searched
	// Says is the event in words, without its project, its story and its reason.
	Says func(EventDetails) string
}

// EventKinds are the types with a meaning. All others are kept unchanged, and shown by their name.
var EventKinds = []EventKind{
	{
		Type: StageTransition, Foreign: "StageTransition", Choice: "moved", Signal: SignalNone, OfStory: true,
		Says: func(d EventDetails) string { return StageTitle(d.FromStage) + " → " + StageTitle(d.ToStage) },
	},
	{
		Type: StoryBlocked, Foreign: "StoryBlocked", Choice: "blocked", Signal: SignalStop, OfStory: true,
		Alert: AlertBlocked, Says: says("blocked"),
	},
	{
		Type: MergeFailure, Foreign: "MergeFailure", Choice: "merge failed", Signal: SignalCaution, OfStory: true,
		Alert: AlertMerge, Says: says("merge failed"),
	},
	{
		Type: FeedGap, Choice: "events dropped", Signal: SignalCaution,
		Says: func(d EventDetails) string {
			return Count(d.Missed, "event was", "events were") + " dropped before the gateway could read them"
		},
	},
	{
		Type: ForeignFeedGap, Foreign: string(FeedGap), Signal: SignalCaution,
		Says: says("the project server reports that events before this one are missing"),
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
	return EventKind{Type: t, Signal: SignalNone, Says: says(strings.ReplaceAll(string(t), "_", " "))}
}

// parseEventType returns the type that a project server means by name. FeedGap is reserved for the gateway.
func parseEventType(name string) EventType {
	for _, k := range EventKinds {
		if k.Foreign == name && name != "" {
			return k.Type
		}
	}
	return EventType(name)
}
