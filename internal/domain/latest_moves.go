package domain

import (
	"encoding/json"
	"slices"
)

// WithGit adds who committed the events that nobody caused through the gateway, and what happened before the project
// was followed. Both lists are oldest first; at most limit are returned, the newest.
func (p Past) WithGit(board ProjectPipeline, events []PastEvent, limit int) []PastEvent {
	names := map[string]string{}
	for _, m := range p.Latest {
		names[m.StoryID] = ""
	}
	for _, stage := range board.Stages {
		for _, item := range stage.Items {
			if _, wanted := names[item.StoryID]; wanted {
				names[item.StoryID] = item.StoryName
			}
		}
	}
	workflow := NewWorkflow(board.Board.Layout, board.Stages)
	own := make([]*PastEvent, len(events))
	for i := range events {
		own[i] = &events[i]
	}
	for _, i := range p.credit(own) {
		if m := p.Latest[i]; m.At.Before(p.Live) {
			d := EventDetails{StoryID: m.StoryID, StoryName: names[m.StoryID], FromStage: m.From, ToStage: m.To}
			text, _ := json.Marshal(d) // texts and numbers always encode
			e := Event{ID: int64(i - len(p.Latest)), Project: board.Project, Record: Record{StageTransition, m.At, text}}
			events = append(events, PastEvent{e, m.Author, ChannelGit, workflow.FinishedBy(e)})
		}
	}
	slices.SortStableFunc(events, func(a, b PastEvent) int { return a.At.Compare(b.At) })
	return events[max(0, len(events)-limit):]
}

// Credit adds who committed the events of any projects that nobody caused through the gateway, as far as the newest
// moves tell; past returns what is known of a project.
func Credit(events []PastEvent, past func(project string) Past) {
	own := map[string][]*PastEvent{}
	for i := range events {
		e := &events[i]
		own[e.Project] = append(own[e.Project], e)
	}
	for project, list := range own {
		past(project).credit(list)
	}
}

// credit adds who committed the project's events, and returns the indexes of the moves without an event, newest first.
func (p Past) credit(events []*PastEvent) (unseen []int) {
	if len(p.Latest) == 0 {
		return nil
	}
	details := Map(events, func(e *PastEvent) EventDetails { return e.Details() })
	for i, m := range slices.Backward(p.Latest) { // of two that fit, the newer has the event: an older one is not listed
		at, nearest := -1, sameMove
		for j, d := range details {
			if apart := events[j].At.Sub(m.At).Abs(); d.StoryID == m.StoryID && d.ToStage == m.To && apart <= nearest {
				at, nearest = j, apart
			}
		}
		switch {
		case at < 0:
			unseen = append(unseen, i)
		case events[at].Via == "":
			events[at].By, events[at].Via = m.Author, ChannelGit
		}
	}
	return unseen
}
