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

// taskMasterParts counts subtasks, of which only the ids of those that are done are kept.
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
		for name := range r.Parts() { // they take everything
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

// looseText is a text or a number as a text, and "" for anything else.
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

// looseTexts are those of a list, and none for anything else.
type looseTexts []string

func (l *looseTexts) UnmarshalJSON(raw []byte) error {
	r := jsonscan.NewReader(raw)
	if r.Kind() != '[' {
		return nil
	}
	for range r.Parts() {
		var text looseText
		if _ = text.UnmarshalJSON(r.Value()); text != "" && len(*l) < maxDepends { // it takes everything
			*l = append(*l, limit(string(text)))
		}
	}
	return nil
}
