package domain

import "time"

// Arrival says since when a story has been in a stage, as a pipeline showed it before any event told of the story.
type Arrival struct {
	Project, StoryID, StoryName, Stage string
	At                                 time.Time
}

// ArrivalNews are the arrivals that gateways told each other of since a position.
type ArrivalNews struct {
	Position int64
	Arrivals []ToldArrival
}

// ToldArrival is an arrival that a gateway told others of.
type ToldArrival struct {
	Arrival
	ID    int64
	Saved bool // the stay that it began is stored
}

// maxUnknown is how many stays of unknown arrival a history remembers.
const maxUnknown = 1000

// unknownArrival is a stay of which only its end is known, by an event. The gateway that saw it begin tells within seconds.
type unknownArrival struct {
	Stay
	move move
}

// keepUnknown remembers the first stay of a story, whose arrival may still be told.
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

// Arrived applies an arrival that another gateway saw, whether or not the story has left that stage since. It must not be called
// twice for the same arrival.
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

// explain completes a stay of unknown arrival. The stay gets the number that it would have if the arrival had been known before.
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
