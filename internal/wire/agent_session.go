package wire

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// AgentSession is a session of a coding agent as the API and MCP show it.
type AgentSession struct {
	ID          string              `json:"id"` // the client's own
	Client      string              `json:"client"`
	By          string              `json:"by"`
	AgentID     *string             `json:"agent_id"`
	Host        *string             `json:"host"`
	CWD         string              `json:"cwd"`
	Worktree    *string             `json:"worktree"`
	Branch      *string             `json:"branch"`
	Project     *string             `json:"project"`
	StoryID     *string             `json:"story_id"`
	Model       *string             `json:"model"`
	State       domain.SessionState `json:"state"`
	SinceMS     int64               `json:"since_ms"` // of the state
	Tool        *string             `json:"tool"`
	ToolSinceMS *int64              `json:"tool_since_ms"`
	QuestionID  *int64              `json:"question_id,string"`
	Mode        *string             `json:"mode"`
	StartedMS   int64               `json:"started_ms"`
	LastMS      int64               `json:"last_ms"`
}

// AgentSessions has the first sessions.
type AgentSessions struct {
	More     int            `json:"more"` // how many others
	Sessions []AgentSession `json:"sessions"`
}

// MaxAgentSessions is how many sessions are shown at once.
const MaxAgentSessions = 200

func NewAgentSessions(list []domain.AgentSession) AgentSessions {
	shown := list[:min(len(list), MaxAgentSessions)]
	return AgentSessions{len(list) - len(shown), domain.Map(shown, newAgentSession)}
}

func newAgentSession(s domain.AgentSession) AgentSession {
	return AgentSession{
		ID: s.ID, Client: s.Client, By: s.By, AgentID: OrNull(s.AgentID), Host: OrNull(s.Host), CWD: s.CWD,
		Worktree: OrNull(s.Worktree), Branch: OrNull(s.Branch), Project: OrNull(s.Project), StoryID: OrNull(s.StoryID),
		Model: OrNull(s.Model), State: s.State, SinceMS: s.Since.UnixMilli(), Mode: OrNull(s.Mode),
		Tool: OrNull(s.Tool), ToolSinceMS: TimeOrNull(s.ToolSince), QuestionID: OrNull(s.QuestionID),
		StartedMS: s.Started.UnixMilli(), LastMS: s.Last.UnixMilli(),
	}
}

// hookMembers are the names of the members that are read from an event.
var hookMembers = func() (names []string) {
	for field := range reflect.TypeFor[domain.HookEvent]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}()

// HookOf reads what is used of a hook's event: the rest may be megabytes. Its error is Invalid.
func HookOf(o Object) (event domain.HookEvent, err error) {
	o = slices.DeleteFunc(slices.Clone(o), func(m member) bool { return !slices.Contains(hookMembers, m.name) })
	if json.Unmarshal(o.Encode(), &event) != nil {
		err = domain.Errorf(domain.Invalid, "names, ids and other texts of a hook's event must be strings")
	}
	return event, err
}
