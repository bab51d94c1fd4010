package views

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
)

func agentState(a domain.RegisteredAgent) (Signal, string) {
	if a.Presence == domain.AgentLost {
		return SignalStop, "lost"
	}
	return stateSignal(a.State), string(a.State)
}

func stateSignal(state domain.AgentState) Signal {
	switch state {
	case domain.AgentRunning:
		return SignalClear
	case domain.AgentFailed:
		return SignalCaution
	}
	return SignalNone
}

// What an agent does that waits for an answer.
const stateAsks, stateHasPlan = "asks", "has a plan"

const maxOutputLines = 200

// The ranks of the list, by what its rows need.
const (
	rankWaits = iota
	rankFails
	rankLost
	rankWorks
	rankIdle
	rankOver
)

// rank orders rows by need. Open questions say more than what an agent reports itself.
func (r agentRow) rank() int {
	a, s := r.agent, r.session
	switch {
	case r.asks != nil || s != nil && s.State == domain.SessionWaiting:
		return rankWaits
	case s != nil && s.State == domain.SessionSilent && a.Presence == domain.AgentAlive:
		return rankFails
	case a.Presence == domain.AgentLost:
		return rankLost
	case a.Presence == domain.AgentLeft:
		return rankOver
	case a.State == domain.AgentFailed || !a.FailingSince.IsZero():
		return rankFails
	case s != nil:
		return sessionStates[s.State].rank
	case a.State == domain.AgentRunning:
		return rankWorks
	}
	return rankIdle
}

// row returns the line of an agent, or of somebody's own session: its signal, its state, and since when it has been in
// it.
func (p AgentsProps) row(id string, a domain.RegisteredAgent, s *domain.AgentSession) agentRow {
	signal, word := agentState(a)
	row := agentRow{id, a, s, p.question(a.ID, s), signal, word, a.StateSince}
	switch {
	case row.asks != nil:
		row.signal, row.word, row.since = SignalAsks, row.asks.state(), row.asks.AskedAt
	case s != nil && (row.isOwn() || a.Presence == domain.AgentAlive && a.FailingSince.IsZero()):
		row.signal, row.word, row.since = sessionStates[s.State].signal, sessionWord(*s), s.Since
	case a.Presence == domain.AgentLost:
		row.since = a.LastSeen
	case !a.FailingSince.IsZero():
		row.since = a.FailingSince
	}
	return row
}

// question returns what an agent or a session asks; nil for nothing.
func (p AgentsProps) question(agent string, s *domain.AgentSession) *QuestionProps {
	i := slices.IndexFunc(p.Asks, func(q QuestionProps) bool {
		return agent != "" && q.AgentID == agent || s != nil && q.ID == s.QuestionID
	})
	if i < 0 {
		return nil
	}
	return &p.Asks[i]
}

func (q QuestionProps) state() string {
	if q.isPlan() {
		return stateHasPlan
	}
	return stateAsks
}

// fitsRow reports whether a question that the reader may answer fits into a list's line in full: a permission, or a
// choice between two.
func (q QuestionProps) fitsRow() bool {
	input := fieldsOf(q.Tool).File + q.input() + strings.Join(q.Options, "") + q.Detail
	isKind := q.Kind == domain.QuestionPermission && !q.isPlan() ||
		q.Kind == domain.QuestionChoice && q.Tool == nil && len(q.Options) == 2
	return isKind && q.Refusal == "" && q.hidden() == 0 &&
		strings.Count(input, "\n") < 3 && len(input) <= 300 && len(q.Prompt) <= 300
}

type agentCounts struct {
	ranks     [rankOver + 1]int
	oldest    time.Time // since when the first one waits
	own, mine int       // people's sessions
}

// add counts a row; mine are the sessions of reader.
func (c *agentCounts) add(row agentRow, reader string) {
	rank := row.rank()
	c.ranks[rank]++
	if rank == rankWaits && (c.oldest.IsZero() || row.since.Before(c.oldest)) {
		c.oldest = row.since
	}
	if row.isOwn() {
		c.own++
		if row.session.Asker == reader {
			c.mine++
		}
	}
}

func (c agentCounts) facts(now time.Time) []fact {
	waits := fact{name: groupWaits, value: thousands(c.ranks[rankWaits]), tone: "text-accent"}
	if c.ranks[rankWaits] > 0 {
		waits.beside = "longest " + minutes(now.Sub(c.oldest))
	}
	return []fact{
		waits,
		{name: "Work", value: thousands(c.ranks[rankWorks])},
		{name: "In trouble", value: thousands(c.ranks[rankFails] + c.ranks[rankLost]), tone: "text-stop"},
		{name: "Idle or free", value: thousands(c.ranks[rankIdle])},
	}
}

// spent is what today's calls have cost, if there were any.
func (p AgentsProps) spent() []fact {
	if p.Today.Calls == 0 {
		return nil
	}
	beside := "list price"
	if usual := p.Today.Usual; usual > 0 {
		beside += ", usually " + usual.Dollars()
	}
	return []fact{{name: "Today", value: p.Today.USD.Dollars(), beside: beside}}
}

// AssignedTo continues a sentence about an agent that has joined.
func AssignedTo(project string) string {
	if project == "" {
		return ""
	}
	return " and is assigned to " + project
}

// waits reports whether the token has not been redeemed and still can be.
func (p JoinProps) waits() bool {
	return p.Token.UsedAt.IsZero() && p.Token.ExpiresAt.After(p.Now)
}

// inAgents returns the attributes of a plain form whose answer replaces only the table. A refresh under way is
// cancelled: it would show the table as it was before.
func inAgents(url string) templ.Attributes {
	return templ.Attributes{
		"data-hx-post": url, "data-hx-target": "#agents", "data-hx-swap": "morph",
		"data-hx-sync": "#agents:replace",
	}
}

// MaxCommand is the longest agent command accepted by the Add agent form, in bytes.
const MaxCommand = 1000

// CheckCommand returns an Invalid error for a command that cannot be part of the line to copy.
func CheckCommand(command string) error {
	switch {
	case len(command) > MaxCommand:
		return domain.Errorf(domain.Invalid, "command: must be at most %d characters", MaxCommand)
	case strings.ContainsFunc(command, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }):
		return domain.Errorf(domain.Invalid, "command: must not contain control characters")
	}
	return nil
}

// Command returns the command line that starts the agent. The token is in its environment, since all users of a machine
// can see arguments. Refused values are left out.
func (t NewToken) Command() string {
	command := "switchyard agent --gateway " + t.Address
	if t.Form.Label != "" && t.Form.Error.Field != "label" {
		command += " --label " + shellWord(t.Form.Label)
	}
	if run := strings.Join(strings.Fields(t.Form.Command), " "); run != "" && t.Form.Error.Field != "command" {
		command += " -- " + run
	}
	return command
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// MCPProps are the data for connecting coding agents to the gateway.
type MCPProps struct {
	Gateway string // its address
	Token   bool   // the gateway requires one
}

// mcpClient holds the configuration of one kind of client.
type mcpClient struct{ id, name, text string }

// clients returns the configurations of common clients. None of them contains a token, which is in
// SWITCHYARD_API_TOKEN.
func (p MCPProps) clients() []mcpClient {
	url := p.Gateway + "/mcp"
	claude, codex := "claude mcp add --transport http switchyard "+url, "[mcp_servers.switchyard]\nurl = \""+url+"\"\n"
	plain, code := map[string]any{"type": "http", "url": url}, map[string]any{"type": "http", "url": url}
	program := map[string]any{"command": "switchyard", "args": []string{"mcp", "--gateway", p.Gateway}}
	if p.Token {
		claude += ` --header "Authorization: Bearer $SWITCHYARD_API_TOKEN"`
		codex += "bearer_token_env_var = \"SWITCHYARD_API_TOKEN\"\n"
		plain["headers"] = map[string]string{"Authorization": "Bearer ${SWITCHYARD_API_TOKEN}"}
		code["headers"] = map[string]string{"Authorization": "Bearer ${env:SWITCHYARD_API_TOKEN}"}
		program["env"] = map[string]string{"SWITCHYARD_API_TOKEN": "…"}
	}
	return []mcpClient{
		{"mcp-claude", "Claude Code", claude},
		{"mcp-codex", "Codex, in ~/.codex/config.toml", codex},
		{"mcp-code", "VS Code, in .vscode/mcp.json", indented("servers", code)},
		{"mcp-json", "Clients with an mcpServers file", indented("mcpServers", plain)},
		{"mcp-stdio", "Clients that start a program", indented("mcpServers", program)},
	}
}

func indented(list string, server map[string]any) string {
	text, err := json.MarshalIndent(map[string]any{list: map[string]any{"switchyard": server}}, "", "  ")
	if err != nil {
		panic(err) // there are only texts
	}
	return string(text)
}
