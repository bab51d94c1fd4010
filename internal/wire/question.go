package wire

import (
	"strconv"

	"switchyard/internal/domain"
)

// Question is a question as the API and MCP show it.
type Question struct {
	ID        string               `json:"id"` // decimal
	Project   *string              `json:"project"`
	StoryID   *string              `json:"story_id"`
	Kind      domain.QuestionKind  `json:"kind"`
	Prompt    string               `json:"prompt"`
	Detail    *string              `json:"detail"`
	Options   []string             `json:"options"`
	Questions []domain.Choice      `json:"questions"` // null except for what a coding agent asks with options
	Tool      *domain.ToolUse      `json:"tool"`
	AskedBy   string               `json:"asked_by"`
	AskedMS   int64                `json:"asked_at_ms"`
	ExpiresMS int64                `json:"expires_at_ms"`
	State     domain.QuestionState `json:"state"`
	Held      bool                 `json:"held"`
	Answer    *QuestionAnswer      `json:"answer"`
}

type QuestionAnswer struct {
	Value   string                         `json:"value"`
	Text    *string                        `json:"text"`
	Answers map[string]domain.ChoiceAnswer `json:"answers"`
	By      string                         `json:"by"`
	Via     domain.Channel                 `json:"via"`
	AtMS    int64                          `json:"at_ms"`
}

func NewQuestion(q domain.Question) Question {
	encoded := Question{
		ID: strconv.FormatInt(q.ID, 10), Project: OrNull(q.Project), StoryID: OrNull(q.StoryID), Kind: q.Kind,
		Prompt: q.Prompt, Detail: OrNull(q.Detail), Options: append([]string{}, q.Options...), Tool: q.Tool, AskedBy: q.By,
		AskedMS: q.AskedAt.UnixMilli(), ExpiresMS: q.Expires.UnixMilli(), State: q.State, Held: q.Held,
	}
	if encoded.Questions = q.Choices(); encoded.Questions != nil {
		encoded.Tool = nil
	}
	if a := q.Answer; a != nil {
		encoded.Answer = &QuestionAnswer{a.Value, OrNull(a.Text), a.Answers, a.By, a.Via, a.At.UnixMilli()}
	}
	return encoded
}
