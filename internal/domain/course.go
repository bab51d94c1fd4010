package domain

import "slices"

// Workflow is the way of stories through the stages of a board. It alone says which stages are work and what finishes a
// story. Stages are known by their positions on the board, -1 for an unknown one.
type Workflow struct {
	Stages   []Stage
	Waiting  int
	From, To int // the stages of work, excluding To
	Done     int // the stage that finishes a story, -1 without stages
	openSpec bool
}

func NewWorkflow(layout string, stages []Stage) Workflow {
	c := Workflow{
		Stages: stages, Waiting: WaitingStage(stages), Done: DoneStage(stages), openSpec: layout == LayoutOpenSpec,
	}
	c.From, c.To = WorkStages(stages)
	return c
}

// At returns the position of the stage of this name, or of its replacement if the board no longer has it.
func (c Workflow) At(name string) int {
	at := slices.IndexFunc(c.Stages, func(s Stage) bool { return s.Name == name })
	if at < 0 && name != "" && len(c.Stages) > 0 {
		return ReplacementStage(c.Stages, name)
	}
	return at
}

func (c Workflow) IsWork(at int) bool { return at >= c.From && at < c.To }

// Finishes reports whether a move finishes a story, which may be finished already: one into the done stage from a stage
// before it. OpenSpec's archive also finishes one that arrived with all its boxes ticked, as from a squashed branch.
func (c Workflow) Finishes(from, to int, already bool) bool {
	if c.openSpec && to > c.Done {
		return from >= 0 && from < c.Done || from == c.Done && !already
	}
	return from >= 0 && from < c.Done && to == c.Done
}

// FinishedBy reports whether an event finished its story. Without a board it goes by the words of stages.
func (c Workflow) FinishedBy(e Event) bool {
	if e.Type != StageTransition {
		return false
	}
	d := e.Details()
	if len(c.Stages) == 0 {
		c = NewWorkflow("", VisitedStages([]string{d.FromStage, d.ToStage}))
		if doneByName(c.Stages) < 0 {
			return false
		}
	}
	return c.Finishes(c.At(d.FromStage), c.At(d.ToStage), true)
}
