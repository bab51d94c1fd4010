package domain

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Choice is one of the questions that a coding agent asks at once, each with options.
type Choice struct {
	Header   string   `json:"header"`
	Prompt   string   `json:"prompt"`
	Options  []Option `json:"options"`
	Multiple bool     `json:"multiple"` // several options may be picked
}

type Option struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// Choices returns what AskUserQuestion asks, nil if that cannot be shown as options or for any other tool.
func (u *ToolUse) Choices() []Choice {
	var input struct {
		Questions []struct {
			Question, Header string
			Options          []Option
			MultiSelect      bool
		}
	}
	if u == nil || u.Name != AskUserQuestion || len(u.Input) > MaxDetail || json.Unmarshal(u.Input, &input) != nil {
		return nil
	}
	var list []Choice
	for _, q := range input.Questions {
		c := Choice{q.Header, q.Question, q.Options, q.MultiSelect}
		if len(c.Options) == 0 || !areDistinct(c.Labels()) {
			return nil
		}
		list = append(list, c)
	}
	if !areDistinct(Map(list, func(c Choice) string { return c.Prompt })) {
		return nil
	}
	return list
}

// areDistinct reports whether texts can be told apart, and none is blank.
func areDistinct(texts []string) bool {
	for i, text := range texts {
		if strings.TrimSpace(text) == "" || slices.Contains(texts[:i], text) {
			return false
		}
	}
	return true
}

func (c Choice) Labels() []string { return Map(c.Options, func(o Option) string { return o.Label }) }

// Choices returns what a coding agent asks with options, nil for any other question.
func (q *Question) Choices() []Choice {
	if q.Kind != QuestionChoice {
		return nil
	}
	return q.Tool.Choices()
}

// Complete returns an answer in the form that is kept: with what was picked for each choice, summed up in its value. It
// returns Invalid for what does not answer the question.
func (q *Question) Complete(a Answer) (Answer, error) {
	choices := q.Choices()
	if len(choices) == 1 && a.Answers == nil && strings.TrimSpace(a.Value) != "" {
		a.Answers = map[string]ChoiceAnswer{choices[0].Prompt: choices[0].Read(a.Value)}
	}
	switch {
	case a.Answers == nil:
		return a, q.CheckAnswer(a.Value, a.Text)
	case choices == nil:
		return a, Errorf(Invalid, "value: is required; this question has no answers")
	}
	var joined []string
	for _, c := range choices {
		joined = append(joined, strings.Join(a.Answers[c.Prompt], ", "))
	}
	return Answer{Value: strings.Join(joined, "; "), Answers: a.Answers}, CheckChoiceAnswers(choices, a.Answers)
}

// Read reads what people write about a choice on one line: for a multiple one labels or numbers separated by commas, or
// else their own text.
func (c Choice) Read(line string) ChoiceAnswer {
	if !c.Multiple {
		return ChoiceAnswer{line}
	}
	labels := c.Labels()
	var picked ChoiceAnswer
	for part := range strings.SplitSeq(line, ",") {
		part = strings.TrimSpace(part)
		i := slices.IndexFunc(labels, func(label string) bool { return strings.EqualFold(label, part) })
		if n, err := strconv.Atoi(part); i < 0 && err == nil {
			i = n - 1
		}
		if i < 0 || i >= len(labels) {
			return ChoiceAnswer{line}
		}
		picked = append(picked, labels[i])
	}
	return picked
}

// ChoiceAnswer is what has been picked for a Choice: labels, or the reader's own text, or for a multiple one both.
type ChoiceAnswer []string

// UnmarshalJSON reads a text or a list of texts.
func (p *ChoiceAnswer) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil && string(text) != "null" {
		*p = ChoiceAnswer{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(p))
}

func (p ChoiceAnswer) MarshalJSON() ([]byte, error) {
	if len(p) == 1 {
		return EncodeJSON(p[0]), nil
	}
	return EncodeJSON([]string(p)), nil
}

// CheckChoiceAnswers returns an Invalid error unless each of the choices, and nothing else, has been answered.
func CheckChoiceAnswers(choices []Choice, answers map[string]ChoiceAnswer) error {
	for text := range answers {
		if !slices.ContainsFunc(choices, func(c Choice) bool { return c.Prompt == text }) {
			return Errorf(Invalid, "answers: nobody asks '%s'", CutText(text))
		}
	}
	for _, c := range choices {
		picked := answers[c.Prompt]
		if len(picked) == 0 {
			return Errorf(Invalid, "answers: '%s' is not answered", CutText(c.Prompt))
		}
		if len(picked) > 1 && !c.Multiple {
			return Errorf(Invalid, "answers: '%s' has one answer", CutText(c.Prompt))
		}
		if !areDistinct(picked) {
			return Errorf(Invalid, "answers: an answer to '%s' is empty or there twice", CutText(c.Prompt))
		}
		for _, text := range picked {
			if utf8.RuneCountInString(text) > MaxAnswer && !slices.Contains(c.Labels(), text) {
				return Errorf(Invalid, "answers: each must be at most %d characters", MaxAnswer)
			}
		}
	}
	return nil
}

// Joined returns what was picked as the coding agent's own terminal would write it.
func (c Choice) Joined(picked ChoiceAnswer) string {
	texts := slices.Clone(picked)
	for i, text := range texts {
		if c.Multiple && strings.Contains(text, ",") && slices.Contains(c.Labels(), text) {
			texts[i] = `"` + text + `"`
		}
	}
	return strings.Join(texts, ", ")
}

// WithAnswers returns the whole input of AskUserQuestion with what was picked, as the coding agent reads it.
func (u *ToolUse) WithAnswers(answers map[string]ChoiceAnswer) json.RawMessage {
	var input map[string]json.RawMessage
	_ = json.Unmarshal(u.Input, &input) // Choices has read it
	joined := map[string]string{}
	for _, c := range u.Choices() {
		joined[c.Prompt] = c.Joined(answers[c.Prompt])
	}
	input["answers"] = EncodeJSON(joined)
	return EncodeJSON(input)
}
