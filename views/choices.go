package views

import (
	"encoding/json"

	"switchyard/internal/domain"
	"switchyard/internal/markdown"
)

// isPlan reports whether a coding agent asks whether it may carry out a plan.
func (q QuestionProps) isPlan() bool {
	return q.Kind == domain.QuestionPermission && q.Tool != nil && q.Tool.Name == domain.ExitPlanMode
}

// plan is a coding agent's plan as HTML, "" where its client sends none. Nothing in it is hidden.
func (q QuestionProps) plan() string {
	var input struct{ Plan string }
	_ = json.Unmarshal(q.Tool.Input, &input)
	text, _ := domain.Expose(input.Plan)
	html, _ := markdown.HTML(text, "")
	return html
}

// atOnce reports whether a question is answered by one press.
func atOnce(choices []domain.Choice) bool { return len(choices) == 1 && !choices[0].Multiple }

// send is what the button says that sends the answers.
func send(choices []domain.Choice) string {
	if len(choices) == 1 {
		return "Send"
	}
	return "Send " + domain.Count(len(choices), "answer", "answers")
}
