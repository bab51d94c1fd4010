package bot

import (
	"encoding/json"
	"slices"
	"strings"
)

// question reads a message of somebody else. Notices are other bots', edits were answered when they were first said.
func (m *matrix) question(e matrixEvent) (Question, bool) {
	var content struct {
		Kind     string `json:"msgtype"`
		Body     string `json:"body"`
		Mentions struct {
			Users []string `json:"user_ids"`
		} `json:"m.mentions"`
		Relates struct {
			Kind string `json:"rel_type"`
		} `json:"m.relates_to"`
	}
	m.mu.Lock()
	user, name := m.session.UserID, m.session.DisplayName
	m.mu.Unlock()
	if json.Unmarshal(e.Content, &content) != nil || content.Kind != "m.text" || content.Relates.Kind == "m.replace" ||
		e.Sender == user || e.Unsigned.Age > maxQuestionAge.Milliseconds() {
		return Question{}, false
	}
	q := Question{Sender: e.Sender, Text: strings.TrimSpace(content.Body), Addressed: slices.Contains(content.Mentions.Users, user)}
	local, _, _ := strings.Cut(strings.TrimPrefix(user, "@"), ":")
	for _, called := range []string{user, name, "@" + local, local} {
		if called == "" || len(q.Text) < len(called) || !strings.EqualFold(q.Text[:len(called)], called) {
			continue
		}
		rest := q.Text[len(called):]
		if trimmed := strings.TrimLeft(rest, ":, "); trimmed != rest || rest == "" {
			q.Text, q.Addressed = trimmed, true
			break
		}
	}
	return q, true
}
