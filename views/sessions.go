package views

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// sessionSignal returns what a session's state looks like.
func sessionSignal(state domain.SessionState) Signal {
	switch state {
	case domain.SessionWorking:
		return SignalClear
	case domain.SessionWaiting:
		return SignalAsks
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

// sessionRank is the rank of an agent whose session is in a state.
func sessionRank(s domain.AgentSession) int {
	switch s.State {
	case domain.SessionWaiting:
		return 0
	case domain.SessionSilent:
		return 1
	case domain.SessionWorking:
		return 3
	}
	return 4
}

// Needs returns the ranks of agents of whom questions and sessions know more than they say themselves.
func (p AgentsProps) Needs() map[string]int {
	needs := map[string]int{}
	for _, s := range slices.Backward(p.Sessions) { // those that wait are first
		if s.AgentID != "" && s.State != domain.SessionOver && sessionRank(s) < 3 {
			needs[s.AgentID] = sessionRank(s)
		}
	}
	for id := range p.Asks {
		needs[id] = 0
	}
	return needs
}

// agentRow is an agent, or else somebody's own session.
type agentRow struct {
	agent   domain.KnownAgent
	session *domain.AgentSession
	since   time.Time
}

// agentGroup is a part of the list, by what its rows need.
type agentGroup struct {
	title string
	rows  []agentRow
}

// groups returns the agents of this page and people's own sessions; those that wait, longest first.
func (p AgentsProps) groups(own []domain.AgentSession) []agentGroup {
	groups := []agentGroup{{title: "Wait for somebody"}, {title: "In trouble"}, {title: "Work"}, {title: "Idle or free"}}
	add := func(rank int, row agentRow) {
		at := &groups[[]int{0, 1, 1, 2, 3, 3}[rank]]
		at.rows = append(at.rows, row)
	}
	needs := p.Needs()
	for _, a := range p.Agents {
		_, _, since := p.agentState(a)
		add(agentRank(a, needs), agentRow{agent: a, since: since})
	}
	for _, s := range own[:min(len(own), maxSessionRows)] {
		add(sessionRank(s), agentRow{session: &s, since: s.Since})
	}
	slices.SortStableFunc(groups[0].rows, func(a, b agentRow) int { return a.since.Compare(b.since) })
	return slices.DeleteFunc(groups, func(g agentGroup) bool { return len(g.rows) == 0 })
}

// maxSessionRows is how many of people's own sessions the page shows.
const maxSessionRows = 100

// own returns people's own sessions that match the filter, on the first page: an agent's is its line. Ended ones are
// only counted.
func (p AgentsProps) own() (live []domain.AgentSession, ended int) {
	wanted := strings.ToLower(strings.TrimSpace(p.List.Filter))
	for _, s := range p.Sessions {
		says := strings.Join([]string{s.By, sessionClient(s), s.Project, s.StoryID, sessionWord(s)}, "\n")
		switch {
		case p.List.Page > 1, !strings.Contains(strings.ToLower(says), wanted):
		case s.State == domain.SessionOver:
			ended++
		case s.AgentID == "":
			live = append(live, s)
		}
	}
	return live, ended
}
