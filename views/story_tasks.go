package views

import (
	"slices"
	"strconv"

	"switchyard/internal/domain"
)

// stageTitle returns the board's word for a stage.
func (p StoryProps) stageTitle(name string) string {
	if p.Story.File != nil && p.Story.File.Label != "" && name == p.Story.Stage {
		return p.Story.File.Label
	}
	return domain.StageWord(p.Stages, name)
}

// fixed says why people cannot move the story, "" if they can.
func (p StoryProps) fixed() string {
	i := slices.IndexFunc(p.Stages, func(s domain.Stage) bool { return s.Name == p.Story.Stage })
	if i < 0 {
		return ""
	}
	return p.Stages[i].Fixed
}

// taskID returns the id of an element for a box.
func taskID(what string, t domain.Task) string {
	id := what + "-" + strconv.Itoa(t.Line)
	if t.Path != "" {
		id = elementID(id, t.Path)
	}
	return id
}

// maxTicked is the longest text of a box in the notice that it was ticked.
const maxTicked = 80

// Ticked says that a box was ticked, or cleared.
func Ticked(text string, done bool) string {
	word := "Cleared"
	if done {
		word = "Ticked"
	}
	return word + " “" + domain.Cut(text, maxTicked) + "”."
}

// isPast reports whether the story has gone past the stage in which stories are finished.
func (p StoryProps) isPast() bool {
	at := slices.IndexFunc(p.Stages, func(s domain.Stage) bool { return s.Name == p.Story.Stage })
	return at > domain.DoneStage(p.Stages)
}

// afterTasks says what follows when all boxes of a story are ticked, "" for nothing.
func (p StoryProps) afterTasks() string {
	done := domain.DoneStage(p.Stages)
	switch {
	case p.isPast() || done < 0 || p.Story.Stage == p.Stages[done].Name:
		return ""
	case p.fixed() == "":
		return "Its stage does not follow from them: it stays where it is when all are ticked."
	}
	return "The last one moves it to " + p.Stages[done].Title() + ", for its stage follows from these boxes."
}
