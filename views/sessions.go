package views

import (
	"slices"
	"strconv"

	"switchyard/internal/domain"
)

// sessionSignal returns what a session's state looks like.
func sessionSignal(state domain.SessionState) Signal {
	switch state {
	case domain.SessionWorking:
		return SignalClear
	case domain.SessionWaiting:
		return SignalCaution
	case domain.SessionSilent:
		return SignalStop
	}
	return SignalNone
}

// sessionWord is the state as people say it.
func sessionWord(s domain.AgentSession) string {
	switch {
	case s.QuestionID != 0:
		return stateAsks
	case s.State == domain.SessionWaiting:
		return "waits"
	}
	return string(s.State)
}

// client names the coding agent of a session, and its machine.
func sessionClient(s domain.AgentSession) string {
	name := "Claude Code"
	if s.Client == domain.Codex {
		name = "Codex"
	}
	if s.Host != "" {
		name += " on " + domain.Cut(s.Host, 60)
	}
	return name
}

func sessionQuestionURL(s domain.AgentSession) string {
	return QuestionsURL + "#question-" + strconv.FormatInt(s.QuestionID, 10)
}

// ofAgent returns the session that an agent's command has, the one that waits first; nil for none.
func (p AgentsProps) ofAgent(id string) *domain.AgentSession {
	i := slices.IndexFunc(p.Sessions, func(s domain.AgentSession) bool {
		return s.AgentID == id && s.State != domain.SessionOver
	})
	if i < 0 {
		return nil
	}
	return &p.Sessions[i]
}

// own returns people's own sessions: an agent's is its line. Ended ones are only counted.
func (p AgentsProps) own() (live []domain.AgentSession, ended int) {
	for _, s := range p.Sessions {
		switch {
		case s.State == domain.SessionOver:
			ended++
		case !slices.ContainsFunc(p.Agents, func(a domain.KnownAgent) bool { return a.ID == s.AgentID }):
			live = append(live, s)
		}
	}
	return live, ended
}
