package views

import (
	"cmp"
	"encoding/json"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/markdown"
)

// isPlan reports whether a coding agent asks whether it may carry out a plan.
func (q QuestionProps) isPlan() bool {
	return q.Kind == domain.QuestionPermission && q.Tool != nil && q.Tool.Name == domain.ExitPlanMode
}

// inputFields are the fields of a tool's input that pages show separately.
type inputFields struct {
	Plan    string
	File    string `json:"file_path"`
	Content *string
}

func fieldsOf(t *domain.ToolUse) (f inputFields) {
	if t != nil {
		_ = json.Unmarshal(t.Input, &f)
	}
	return f
}

// planLines is how many lines of a plan are always shown.
const planLines = 12

// plan is a coding agent's plan, "" if its client sends none. Nothing in it is hidden.
func (q QuestionProps) plan() string { return visible(strings.TrimSpace(fieldsOf(q.Tool).Plan)) }

// foldedPlan is a plan as HTML: its beginning, and the folded rest, "" for nothing, with that part's number of lines
// and headings.
func foldedPlan(text string) (head, rest string, lines int, headings []string) {
	all, at, inCode := strings.SplitAfter(text, "\n"), 0, false
	for i, line := range all {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inCode = !inCode
		}
		isTop := !inCode && strings.TrimLeft(line, " \t") == line
		if at == 0 && i >= planLines && isTop && strings.TrimSpace(all[i-1]) == "" {
			at = i
		}
		if at > 0 && !inCode && strings.HasPrefix(line, "#") {
			headings = append(headings, "“"+domain.Cut(strings.TrimSpace(strings.TrimLeft(line, "#")), 40)+"”")
		}
	}
	if at == 0 {
		at = len(all)
	}
	head, _ = markdown.HTML(strings.Join(all[:at], ""), "")
	if at < len(all) {
		rest, _ = markdown.HTML(strings.Join(all[at:], ""), "")
	}
	return head, rest, len(all) - at, headings[:min(len(headings), 3)]
}

// atOnce reports whether a question is answered by one press.
func atOnce(choices []domain.Choice) bool { return len(choices) == 1 && !choices[0].Multiple }

// answerDetails is what was said beside how a question ended: a note, or the answer to each of several questions.
func (q QuestionProps) answerDetails() (said [][2]string) {
	a := q.Answer
	if a == nil {
		return nil
	}
	if a.Text != "" {
		said = append(said, [2]string{"with the note", "“" + visible(domain.Cut(a.Text, 300)) + "”"})
	}
	for _, c := range q.Choices() {
		if len(a.Answers) > 1 {
			answer := domain.Cut(strings.Join(a.Answers[c.Prompt], ", "), 300)
			said = append(said, [2]string{visible(domain.Cut(cmp.Or(c.Header, c.Prompt), 60)) + ":", visible(answer)})
		}
	}
	return said
}
