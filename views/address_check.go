package views

import (
	"fmt"

	"switchyard/internal/domain"
)

// AddressCheck is the result of checking an address.
type AddressCheck struct {
	URL     string                 // "" when nothing was asked
	Answer  *domain.PipelineAnswer // nil if no project server answers
	Problem string                 // why not
	Refused bool                   // no request was made: Problem is a sentence that says what is wrong with the address
}

// Answers reports whether a project server answers.
func (c AddressCheck) Answers() bool { return c.Answer != nil }

// Words says what answers.
func (c AddressCheck) Words() string {
	switch {
	case c.Refused:
		return c.Problem
	case c.Answer == nil:
		return fmt.Sprintf("No project server answers at %s. %s", c.URL, Sentence(c.Problem))
	case c.Answer.EventsOnly:
		return "A project server with events only answers: there will be no board."
	}
	stories := 0
	for _, stage := range c.Answer.Stages {
		stories += len(stage.Items)
	}
	return fmt.Sprintf("A project server answers, with %s and %s.", count(len(c.Answer.Stages), "stage", "stages"),
		count(stories, "story", "stories"))
}
