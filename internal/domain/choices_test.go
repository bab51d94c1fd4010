package domain_test

import (
	"encoding/json"
	"slices"
	"testing"

	"switchyard/internal/domain"
)

// TestAChoiceIsAnsweredInALine, as in chat: by labels or numbers, or in one's own words.
func TestAChoiceIsAnsweredInALine(t *testing.T) {
	ask := func(multiple string) domain.Question {
		return domain.Question{Kind: domain.QuestionChoice, Prompt: "Which?", Tool: &domain.ToolUse{
			Name: domain.AskUserQuestion, Input: json.RawMessage(`{"questions":[{"question":"Which?","options":[{"label":"SQLite"},{"label":"Postgres"}],"multiSelect":` + multiple + `}]}`),
		}}
	}
	one, several := ask("false"), ask("true")
	one.Options = one.Choices()[0].Labels()
	for _, q := range []domain.Question{one, several} {
		if value, _, ok := q.ParseAnswer("3"); ok {
			t.Errorf("an option that does not exist is %q", value)
		}
	}
	for line, want := range map[string]struct{ one, several domain.ChoiceAnswer }{
		"2":               {domain.ChoiceAnswer{"Postgres"}, domain.ChoiceAnswer{"Postgres"}},
		"sqlite":          {domain.ChoiceAnswer{"SQLite"}, domain.ChoiceAnswer{"SQLite"}},
		"2, sqlite":       {domain.ChoiceAnswer{"Postgres"}, domain.ChoiceAnswer{"Postgres", "SQLite"}},
		"none, but files": {domain.ChoiceAnswer{"none, but files"}, domain.ChoiceAnswer{"none, but files"}},
	} {
		for q, want := range map[*domain.Question]domain.ChoiceAnswer{&one: want.one, &several: want.several} {
			value, _, ok := q.ParseAnswer(line)
			if c := q.Choices()[0]; !ok || !slices.Equal(c.Read(value), want) {
				t.Errorf("%q, several %v: %q, %v; want %q", line, c.Multiple, c.Read(value), ok, want)
			}
		}
	}
}
