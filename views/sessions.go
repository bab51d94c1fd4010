package views

import (
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// sessionStates are how a session looks in each state, and its rank among agents, as agentRank has them.
var sessionStates = map[domain.SessionState]struct {
	signal Signal
	rank   int
}{
	domain.SessionWaiting: {SignalAsks, 0},
	domain.SessionSilent:  {SignalStop, 1},
	domain.SessionWorking: {SignalClear, 3},
	domain.SessionIdle:    {SignalNone, 4},
	domain.SessionOver:    {SignalNone, 5},
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

// ofAgent returns the session that an agent's command has, the one that waits first; nil for none.
func ofAgent(sessions []domain.AgentSession, id string) *domain.AgentSession {
	i := slices.IndexFunc(sessions, func(s domain.AgentSession) bool {
		return s.AgentID == id && s.State != domain.SessionOver
	})
	if i < 0 {
		return nil
	}
	return &sessions[i]
}

// Needs returns the ranks of agents of whom questions and sessions know more than they say themselves.
func (p AgentsProps) Needs() map[string]int {
	needs := map[string]int{}
	for _, s := range slices.Backward(p.Sessions) { // those that wait are first
		if s.AgentID != "" && s.State != domain.SessionOver {
			needs[s.AgentID] = sessionStates[s.State].rank
		}
	}
	for _, q := range p.Asks {
		needs[q.AgentID] = 0
	}
	return needs
}

// agentRow is an agent with the session that it has; or somebody's own session, which has no more of an agent than a
// label and whether it is away.
type agentRow struct {
	id      string // of its element
	agent   domain.KnownAgent
	session *domain.AgentSession
	asks    *QuestionProps
	signal  Signal
	word    string
	since   time.Time
}

// ownRow returns the line of somebody's own session.
func (p AgentsProps) ownRow(s *domain.AgentSession) agentRow {
	row := agentRow{
		elementID("session", s.Asker+" "+s.ID),
		domain.KnownAgent{Agent: domain.Agent{Label: s.By}},
		s, p.question("", s.QuestionID), sessionStates[s.State].signal, sessionWord(*s), s.Since,
	}
	if s.State != domain.SessionSilent {
		row.agent.Presence = domain.AgentAlive
	}
	if row.asks != nil {
		row.word = row.asks.state()
	}
	return row
}

// story returns the story of a row, with an empty ID for none.
func (p AgentsProps) story(r agentRow) (domain.StoryKey, domain.Item) {
	if r.isOwn() {
		return r.session.Story(), p.Stories[r.session.Story()].Item
	}
	item := p.Work[r.agent.ID].Item
	return domain.StoryKey{Project: r.agent.Project, ID: item.StoryID}, item
}

// AtRest returns the stories with changes whose agents and sessions are idle.
func (p AgentsProps) AtRest() (keys []domain.StoryKey) {
	live, _ := p.own()
	for _, g := range p.groups(live) {
		for _, row := range g.rows {
			if key, item := p.story(row); row.word == string(domain.SessionIdle) && item.Work != nil && item.Work.Ahead > 0 {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// AddDue notes what is for review of a story, which has these sessions.
func (p AgentsProps) AddDue(story domain.Story, sessions []domain.AgentSession) {
	of, at := StoryProps{Story: story, Sessions: sessions}, domain.StoryKey{Project: story.Project, ID: story.ID}
	for _, a := range p.Agents {
		if key, _ := p.story(agentRow{agent: a}); key == at {
			of.Agents = append(of.Agents, a)
		}
	}
	p.Due[at] = dueReview(of)
}

// isOwn reports whether the row is somebody's own session.
func (r agentRow) isOwn() bool { return r.agent.ID == "" }

// agentGroup is a part of the list, by what its rows need.
type agentGroup struct {
	title string
	rows  []agentRow
}

const groupWaits = "Wait for somebody"

// groups returns the agents of this page and people's own sessions; those that wait, longest first.
func (p AgentsProps) groups(own []domain.AgentSession) []agentGroup {
	groups := []agentGroup{{title: groupWaits}, {title: "In trouble"}, {title: "Work"}, {title: "Idle or free"}}
	add := func(rank int, row agentRow) {
		at := &groups[[]int{0, 1, 1, 2, 3, 3}[rank]]
		at.rows = append(at.rows, row)
	}
	needs := p.Needs()
	for _, a := range p.Agents {
		add(agentRank(a, needs), p.agentRow(a))
	}
	for _, s := range own[:min(len(own), maxSessionRows)] {
		add(sessionStates[s.State].rank, p.ownRow(&s))
	}
	slices.SortStableFunc(groups[0].rows, func(a, b agentRow) int { return a.since.Compare(b.since) })
	return slices.DeleteFunc(groups, func(g agentGroup) bool { return len(g.rows) == 0 })
}

// maxSessionRows is how many of people's own sessions the page shows.
const maxSessionRows = 100

// What Agents shows.
const (
	showSent Show = "sent" // by this yard
	showOwn  Show = "own"  // people's
	showMine Show = "mine" // the reader's
)

// own returns people's own sessions that are asked for, on the first page: an agent's is its line; and the ended ones.
func (p AgentsProps) own() (live, ended []domain.AgentSession) {
	wanted := strings.ToLower(strings.TrimSpace(p.List.Filter))
	for _, s := range p.Sessions {
		says := strings.Join([]string{s.By, sessionClient(s), s.Project, s.StoryID, sessionWord(s)}, "\n")
		switch {
		case p.List.Page > 1, !strings.Contains(strings.ToLower(says), wanted), !p.isShown(s):
		case s.State == domain.SessionOver:
			ended = append(ended, s)
		case s.AgentID == "":
			live = append(live, s)
		}
	}
	return live, ended
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
