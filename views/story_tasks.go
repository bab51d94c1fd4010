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
	if at := p.at(); at >= 0 {
		return p.Stages[at].Fixed
	}
	return ""
}

func taskID(what string, t domain.Task) string {
	id := what + "-" + strconv.Itoa(t.Line)
	if t.Path != "" {
		id = elementID(id, t.Path)
	}
	return id
}

const maxTicked = 80

// Ticked says that a box was ticked or cleared.
func Ticked(text string, done bool) string {
	word := "Cleared"
	if done {
		word = "Ticked"
	}
	return word + " “" + domain.Cut(text, maxTicked) + "”."
}

func (p StoryProps) at() int {
	return slices.IndexFunc(p.Stages, func(s domain.Stage) bool { return s.Name == p.Story.Stage })
}

// isPast reports whether the story has gone past the stage in which stories are finished.
func (p StoryProps) isPast() bool { return p.at() > domain.DoneStage(p.Stages) }

// isFinished reports whether the story is in the stage in which stories are finished, or past it.
func (p StoryProps) isFinished() bool {
	done := domain.DoneStage(p.Stages)
	return done >= 0 && p.at() >= done
}

// next returns the stage to which people move the story next, nil if there is none.
func (p StoryProps) next() *domain.Stage {
	at := p.at()
	if at < 0 || p.isFinished() || p.fixed() != "" {
		return nil
	}
	for i := range p.Stages[at+1:] {
		if stage := &p.Stages[at+1+i]; stage.Fixed == "" && !stage.Other {
			return stage
		}
	}
	return nil
}

// otherStages returns the stages to which people can move the story, except that of the primary action.
func (p StoryProps) otherStages(primary string) []domain.Stage {
	return slices.DeleteFunc(slices.Clone(p.Stages), func(s domain.Stage) bool {
		return s.Name == p.Story.Stage || s.Fixed != "" || s.Other || primary == actMove && s.Name == p.next().Name
	})
}

// afterTasks says what follows once all boxes of a story are ticked, "" for nothing.
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
