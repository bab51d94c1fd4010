package views

import (
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// sessionStates are a session's looks and rank in each state.
var sessionStates = map[domain.SessionState]struct {
	signal Signal
	rank   int
}{
	domain.SessionWaiting: {SignalAsks, rankWaits},
	domain.SessionSilent:  {SignalStop, rankFails},
	domain.SessionWorking: {SignalClear, rankWorks},
	domain.SessionIdle:    {SignalNone, rankIdle},
	domain.SessionOver:    {SignalNone, rankOver},
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

// byAgent returns the sessions of agents' commands; of several, the one that has waited longest.
func byAgent(sessions []domain.AgentSession) map[string]*domain.AgentSession {
	of := map[string]*domain.AgentSession{}
	for i, s := range slices.Backward(sessions) { // those that wait come first
		if s.AgentID != "" && s.State != domain.SessionOver {
			of[s.AgentID] = &sessions[i]
		}
	}
	return of
}

// agentRow is an agent with its session; or somebody's own session, for which agent has only a label and whether it is
// away.
type agentRow struct {
	id      string // its element's
	agent   domain.RegisteredAgent
	session *domain.AgentSession
	asks    *QuestionProps
	signal  Signal
	word    string
	since   time.Time
}

// isOwn reports whether the row is somebody's own session.
func (r agentRow) isOwn() bool { return r.agent.ID == "" }

// story returns the story of a row, with an empty ID for none.
func (p AgentsProps) story(r agentRow) (domain.StoryKey, domain.Item) {
	if r.isOwn() {
		return r.session.Story(), p.Stories[r.session.Story()].Item
	}
	item := p.Work[r.agent.ID].Item
	return domain.StoryKey{Project: r.agent.Project, ID: item.StoryID}, item
}

// IdleStories returns the stories with changes whose agents and sessions are idle.
func (p AgentsProps) IdleStories() (keys []domain.StoryKey) {
	for _, row := range p.rows {
		if key, item := p.story(row); row.word == string(domain.SessionIdle) && item.Work != nil && item.Work.Ahead > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// AddDue notes what is due for review of a story with these sessions.
func (p AgentsProps) AddDue(story domain.Story, sessions []domain.AgentSession) {
	of, at := StoryProps{Story: story, Sessions: sessions}, domain.StoryKey{Project: story.Project, ID: story.ID}
	for _, a := range p.Agents {
		if key, _ := p.story(agentRow{agent: a}); key == at {
			of.Agents = append(of.Agents, a)
		}
	}
	p.Due[at] = dueReview(of)
}

// agentGroup is a part of the list, by what its rows need.
type agentGroup struct {
	title string
	rows  []agentRow
}

const groupWaits = "Wait for somebody"

// groups returns what the page shows; of those that wait, the longest first.
func (p AgentsProps) groups() []agentGroup {
	groups := []agentGroup{{title: groupWaits}, {title: "In trouble"}, {title: "Work"}, {title: "Idle or free"}}
	groupOf := [...]int{rankWaits: 0, rankFails: 1, rankLost: 1, rankWorks: 2, rankIdle: 3, rankOver: 3}
	for _, row := range p.rows {
		of := &groups[groupOf[row.rank()]]
		of.rows = append(of.rows, row)
	}
	slices.SortStableFunc(groups[0].rows, func(a, b agentRow) int { return a.since.Compare(b.since) })
	return slices.DeleteFunc(groups, func(g agentGroup) bool { return len(g.rows) == 0 })
}

// maxSessionRows is how many of people's own sessions the page shows.
const maxSessionRows = 100

// What the Agents page shows.
const (
	showSent Show = "sent" // by this yard
	showOwn  Show = "own"  // people's
	showMine Show = "mine" // the reader's
)

// addOwn adds people's own sessions, and the ended ones, on the first page, if they were requested.
func (p *AgentsProps) addOwn() {
	wanted, agents := strings.ToLower(strings.TrimSpace(p.List.Filter)), len(p.rows)
	for i := range p.Sessions {
		s := &p.Sessions[i]
		says := strings.Join([]string{s.By, sessionClient(*s), s.Project, s.StoryID, sessionWord(*s)}, "\n")
		isAsked := p.List.Page == 1 && strings.Contains(strings.ToLower(says), wanted) && p.isShown(*s)
		if s.State == domain.SessionOver && isAsked {
			p.ended = append(p.ended, *s)
		}
		if s.State == domain.SessionOver || s.AgentID != "" { // an agent's session is in its line
			continue
		}
		own := domain.RegisteredAgent{Agent: domain.Agent{Label: s.By}, Presence: domain.AgentAlive}
		if s.State == domain.SessionSilent {
			own.Presence = ""
		}
		row := p.row(elementID("session", s.Asker+" "+s.ID), own, s)
		p.counts.add(row, p.Reader)
		switch {
		case isAsked && len(p.rows)-agents < maxSessionRows:
			p.rows = append(p.rows, row)
		case isAsked:
			p.more++
		}
	}
}

func (p AgentsProps) isShown(s domain.AgentSession) bool {
	switch p.List.show {
	case showSent:
		return s.AgentID != ""
	case showOwn:
		return s.AgentID == ""
	case showMine:
		return s.AgentID == "" && s.Asker == p.Reader
	}
	return true
}
