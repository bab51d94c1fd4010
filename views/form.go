package views

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
)

// FieldError is why a form was refused. Field is the name of the input at fault, "" for the form as a whole.
type FieldError struct {
	Field   string
	Message string // "" for none
}

func (e FieldError) at(field string) bool { return e.Message != "" && e.Field == field }

// attributes returns the attributes of an input for the error, if it belongs to this field. The field then gets the
// focus.
func (e FieldError) attributes(field string) templ.Attributes {
	if !e.at(field) {
		return nil
	}
	return templ.Attributes{"aria-invalid": "true", "aria-errormessage": errorID(field), "autofocus": true}
}

// oneLine returns the attributes of an input for a name or a reason of at most most characters, so that the browser
// reports at the field what the service would refuse.
func oneLine(most int) templ.Attributes {
	return templ.Attributes{
		"required": true, "maxlength": strconv.Itoa(most), "autocomplete": "off",
		"pattern": `[^\p{Cc}]*[^\p{Cc}\s][^\p{Cc}]*`, "title": "At least one visible character, and no control characters",
	}
}

func errorID(field string) string {
	if field == "" {
		return "form-error"
	}
	return field + "-error"
}

type AddressCheck struct {
	URL        string                 // "" if nothing was requested
	Answer     *domain.PipelineAnswer // nil if no project server answers
	Problem    string                 // why not
	NeedsToken bool                   // other than the one sent
	Refused    bool                   // no request was made: Problem says what is wrong with the address
}

func (c AddressCheck) Answers() bool { return c.Answer != nil }

// Words says what answers.
func (c AddressCheck) Words() string {
	switch {
	case c.Refused:
		return c.Problem
	case c.Answer == nil:
		words := "No project server answers at %s. %s"
		if strings.HasPrefix(c.Problem, "refuses the token") {
			words = "A project server answers at %s. %s"
		}
		return fmt.Sprintf(words, c.URL, WhyAway(c.Problem))
	case c.Answer.EventsOnly:
		return "A project server with events only answers: there will be no board."
	}
	stories := 0
	for _, stage := range c.Answer.Stages {
		stories += len(stage.Items)
	}
	return fmt.Sprintf("A project server answers, with %s and %s.", domain.Count(len(c.Answer.Stages), "stage", "stages"),
		domain.Count(stories, "story", "stories"))
}
