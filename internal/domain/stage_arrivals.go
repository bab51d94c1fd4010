package domain

import "time"

// Arrival is when a story entered a stage, learned from a pipeline before there was any event about the story.
type Arrival struct {
	Project, StoryID, StoryName, Stage string
	At                                 time.Time
}

// ArrivalNews are the arrivals that gateways have shared since a position.
type ArrivalNews struct {
	Position int64
	Arrivals []SharedArrival
}

// SharedArrival is an arrival that a gateway has shared with others.
type SharedArrival struct {
	Arrival
	ID    int64
	Saved bool // the stay that it began has been stored
}

// maxUnknown is how many stays with unknown arrivals a history keeps.
const maxUnknown = 1000

// unknownArrival is a stay of which an event has shown only the end. A gateway that saw the arrival shares it within seconds.
type unknownArrival struct {
	Stay
	move move
}

// keepUnknown keeps the first stay of a story, in case another gateway shares its arrival.
func (h *StageHistory) keepUnknown(stay Stay, made move) {
	if h.unknown == nil || len(h.unknown) >= maxUnknown {
		h.unknown = map[string]unknownArrival{}
	}
	h.unknown[stay.StoryID] = unknownArrival{stay, made}
}

// TakeArrivals returns the arrivals that Observe has found since the last call, without names and project.
func (h *StageHistory) TakeArrivals() []Arrival {
	arrived := h.arrived
	h.arrived = nil
	return arrived
}

// Arrived applies an arrival that another gateway has shared, whether or not the story has left that stage since. It must not be
// called twice for the same arrival.
func (h *StageHistory) Arrived(a Arrival) {
	if h.index(a.Stage) >= maxStageNames {
		return
	}
	stay := h.open[a.StoryID]
	unknown, left := h.unknown[a.StoryID]
	switch {
	case left && unknown.Stage == a.Stage && a.At.Before(unknown.To):
		h.explain(unknown, a.At)
	case stay == nil:
		h.begin(Stay{Project: a.Project, StoryID: a.StoryID, Stage: a.Stage, From: a.At, Shown: true}, a.At)
	case stay.Stage == "", stay.Stage == a.Stage && stay.Shown && a.At.Before(stay.From):
		stay.Stage, stay.From = a.Stage, a.At
		h.change(stay.Stay)
	}
}

// explain completes a stay whose arrival was unknown. The stay gets the number that it would have had with a known arrival.
func (h *StageHistory) explain(unknown unknownArrival, at time.Time) {
	delete(h.unknown, unknown.StoryID)
	h.drop(stayKey{unknown.StoryID, unknown.Number})
	known := unknown.Stay
	known.Number, known.From = at.UnixMilli(), at
	h.change(known)
	if made, ok := h.newMove(known.StoryID, known.Stage, known.Next, at, known.To); ok {
		h.correct(unknown.move, &made)
	}
}
