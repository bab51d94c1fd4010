package board

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/jsonscan"
)

type taskMasterTask struct {
	ID             looseText       `json:"id"`
	Title          looseText       `json:"title"`
	Description    looseText       `json:"description"`
	Details        looseText       `json:"details"`
	Status         looseText       `json:"status"`
	PreviousStatus looseText       `json:"previousStatus"`
	Dependencies   looseTexts      `json:"dependencies"`
	Subtasks       taskMasterParts `json:"subtasks"`
}

// taskMasterParts counts subtasks and keeps the ids only of those that are done.
type taskMasterParts struct {
	domain.Criteria
	done []looseText
}

func (p *taskMasterParts) UnmarshalJSON(raw []byte) error {
	r := jsonscan.NewReader(raw)
	if r.Kind() != '[' {
		return nil
	}
	for range r.Parts() {
		var id, status looseText
		for name := range r.Parts() { // they accept any value
			switch {
			case name.Is("status"):
				_ = status.UnmarshalJSON(r.Value())
			case name.Is("id"):
				_ = id.UnmarshalJSON(r.Value())
			}
		}
		p.Total++
		if taskMasterStage(status) == "done" {
			if p.Done++; p.Done <= maxParts {
				p.done = append(p.done, id)
			}
		}
	}
	return nil
}

// looseText is text, with numbers taken as text and anything else as "".
type looseText string

func (t *looseText) UnmarshalJSON(raw []byte) error {
	if last := len(raw) - 1; raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		*t = looseText(strings.TrimSpace(string(raw[1:last])))
		return nil
	}
	var text string
	var number json.Number
	if json.Unmarshal(raw, &text) == nil {
		*t = looseText(strings.TrimSpace(text))
	} else if json.Unmarshal(raw, &number) == nil {
		*t = looseText(number.String())
	}
	return nil
}

// looseTexts is a list of looseText, empty for anything else.
type looseTexts []string

func (l *looseTexts) UnmarshalJSON(raw []byte) error {
	r := jsonscan.NewReader(raw)
	if r.Kind() != '[' {
		return nil
	}
	for range r.Parts() {
		var text looseText
		if _ = text.UnmarshalJSON(r.Value()); text != "" && len(*l) < maxDepends { // it accepts any value
			*l = append(*l, limit(string(text)))
		}
	}
	return nil
}
