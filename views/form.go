package views

import (
	"strconv"

	"github.com/a-h/templ"
)

// FieldError is why a form was refused. Field is the name of the input at fault, "" for the form as a whole.
type FieldError struct {
	Field   string
	Message string // "" for none
}

// at reports whether the error belongs to this field.
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
