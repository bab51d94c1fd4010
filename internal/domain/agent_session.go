package domain

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"
)

// SessionState is what a coding agent's session is doing.
type SessionState string

const (
	SessionWorking SessionState = "working" // since a prompt or a tool
	SessionWaiting SessionState = "waiting" // for a person
	SessionIdle    SessionState = "idle"    // it has started, or stopped
	SessionSilent  SessionState = "silent"  // it worked, and was not heard of since: an interruption says nothing
	SessionOver    SessionState = "ended"
)

const (
	// silentAfter is how long a working session may send nothing: a tool may take that long.
	silentAfter = 10 * time.Minute
	// sessionLife is how long after its last word a session counts as ended, and how long it is then still shown.
	sessionLife = 24 * time.Hour
	// WaitingTime is how long a session waits for a person before that is an alert.
	WaitingTime = 2 * time.Minute
	// MaxAgentSessions is how many sessions of one asker are kept.
	MaxAgentSessions = 1000
	// maxUses is how many ids of a session's current tool uses are kept.
	maxUses = 20
)

// The coding agents whose hooks are known.
const (
	ClaudeCode = "claude-code"
	Codex      = "codex"
)

// Hook events that are answered, and the name of a stop that could not be.
const (
	PermissionRequest = "PermissionRequest" // asks people
	HookStop          = "Stop"              // gets the note with which its story was sent back
	HookStopFailure   = "StopFailure"
)

// HookEvent is what is read of an event from a coding agent's hook: no prompt, no answer, and of a tool only its name.
// Its texts are a stranger's.
type HookEvent struct {
	Name         string `json:"hook_event_name"`
	Session      string `json:"session_id"`
	CWD          string `json:"cwd,omitempty"`
	Model        string `json:"model,omitempty"`
	Mode         string `json:"permission_mode,omitempty"`
	Tool         string `json:"tool_name,omitempty"`
	UseID        string `json:"tool_use_id,omitempty"`
	Notification string `json:"notification_type,omitempty"`
	Source       string `json:"source,omitempty"` // why it starts
	// The rest is added by switchyard hook.
	Client   string `json:"client,omitempty"`
	Host     string `json:"host,omitempty"`
	Worktree string `json:"worktree,omitempty"`
	Branch   string `json:"branch,omitempty"`
	Project  string `json:"project,omitempty"`
	// These identify Codex. Identify drops them.
	Turn       string `json:"turn_id,omitempty"`
	Transcript string `json:"transcript_path,omitempty"`
}

// hookKind is what a kind of event says about its session.
type hookKind struct {
	client string       // the only client that has it, "" for all
	state  SessionState // the session's state then, "" for the one before
	goesOn bool         // what it asked before has been answered
}

var hookKinds = map[string]hookKind{
	"SessionStart":       {"", SessionIdle, true},
	"UserPromptSubmit":   {"", SessionWorking, true},
	"PreToolUse":         {"", SessionWorking, true},
	PermissionRequest:    {"", SessionWorking, false},
	"PostToolUse":        {"", SessionWorking, true},
	"PostToolUseFailure": {ClaudeCode, SessionWorking, true},
	"Notification":       {ClaudeCode, "", false},
	"SubagentStop":       {"", "", false},
	HookStop:             {"", SessionIdle, true},
	HookStopFailure:      {ClaudeCode, SessionIdle, true},
	"Interrupt":          {Codex, SessionIdle, true},
	"SessionEnd":         {"", SessionOver, true},
}

// SessionHooks returns the names of a client's events that say something about a session, sorted.
func SessionHooks(client string) (names []string) {
	for name, kind := range hookKinds {
		if kind.client == "" || kind.client == client {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Identify makes the event one of a known client, with texts that can be kept. It returns false for an event that says
// nothing about a session.
func (e HookEvent) Identify() (HookEvent, bool) {
	if e.Client != ClaudeCode && e.Client != Codex {
		e.Client = ""
		if e.Turn != "" || strings.HasPrefix(path.Base(e.Transcript), "rollout-") {
			e.Client = Codex
		}
	}
	e.Turn, e.Transcript = "", ""
	for _, text := range []*string{
		&e.Session, &e.CWD, &e.Model, &e.Mode, &e.Tool, &e.UseID, &e.Host, &e.Worktree, &e.Branch, &e.Project,
	} {
		*text = CutText(strings.ToValidUTF8(strings.ReplaceAll(*text, "\x00", ""), ""))
	}
	_, known := hookKinds[e.Name]
	return e, known && e.Session != ""
}

// asksForInput reports whether the event is a notification that the agent waits for a person.
func (e HookEvent) asksForInput() bool {
	kind := e.Notification
	return e.Name == "Notification" && (strings.HasSuffix(kind, "permission_prompt") || kind == "agent_needs_input" ||
		strings.HasPrefix(kind, "elicitation_") && kind != "elicitation_complete" && kind != "elicitation_response")
}

// AgentSession is a session of a coding agent, as reported by its client's hooks. It belongs to whoever's token they
// came with.
type AgentSession struct {
	ID       string // the client's own
	Asker    string // as Actor.Holder returns it
	By       string // the asker's name
	AgentID  string `json:",omitzero"` // "" unless it is the command of an agent
	Client   string
	Host     string `json:",omitzero"`
	CWD      string `json:",omitzero"`
	Worktree string `json:",omitzero"`
	Branch   string `json:",omitzero"`
	Project  string `json:",omitzero"` // the one its agent is assigned to, or its environment names
	Model    string `json:",omitzero"`
	Mode     string `json:",omitzero"` // of its permissions

	// State is working, idle or ended, going by the last events; At returns what it is at a time.
	State     SessionState
	Since     time.Time
	Tool      string    `json:",omitzero"` // the one in use
	ToolSince time.Time `json:",omitzero"`
	Uses      []string  `json:",omitzero"` // the ids of tool uses that have begun, the latest at the end
	Noticed   time.Time `json:",omitzero"` // since when it has said that it waits for a person
	WentOn    time.Time `json:",omitzero"` // when it last went on: what it asked before has been answered
	Started   time.Time
	Stopped   time.Time `json:",omitzero"` // when a stop of it was last answered
	Last      time.Time // when it was last heard of; increasing

	StoryID    string `json:"-"` // the one it works on; what it is linked to is known when it is read
	QuestionID int64  `json:"-"` // its question, which somebody holds
	Asks       bool   `json:"-"` // something that it asked is open
	Dropped    bool   `json:"-"` // it is to be removed
}

// AgentSessionKey tells sessions apart.
type AgentSessionKey struct{ Asker, ID string }

func (s AgentSession) Key() AgentSessionKey { return AgentSessionKey{s.Asker, s.ID} }

// Story returns the story that the session works on, with an empty ID if it works on none.
func (s AgentSession) Story() StoryKey { return StoryKey{Project: s.Project, ID: s.StoryID} }

// After returns the session after an event, returned by Identify, at a time.
func (s AgentSession) After(e HookEvent, at time.Time) AgentSession {
	kind, before := hookKinds[e.Name], s.At(at, nil)
	switch begins := e.Name == "SessionStart" || e.Name == "UserPromptSubmit" || e.Name == "PreToolUse"; {
	case s.State == SessionOver && !begins:
		return s // it is late
	case s.Started.IsZero(), s.State == SessionOver:
		s.Started, s.State, s.Since = at, SessionIdle, at
	}
	if e.Name == HookStop {
		s.Stopped = at
	}
	if !at.After(s.Last) { // events of one millisecond stay in order
		at = s.Last.Add(time.Millisecond)
	}
	s.Last, s.Noticed = at, time.Time{}
	s.Client, s.CWD, s.Model = cmp.Or(e.Client, s.Client, ClaudeCode), cmp.Or(e.CWD, s.CWD), cmp.Or(e.Model, s.Model)
	s.Mode, s.Host, s.Project = cmp.Or(e.Mode, s.Mode), cmp.Or(e.Host, s.Host), cmp.Or(e.Project, s.Project)
	if e.Host != "" { // from switchyard hook, which looks each time
		s.Worktree, s.Branch = e.Worktree, e.Branch
	}
	if e.asksForInput() {
		s.Noticed = at
	}
	if kind.goesOn {
		s.WentOn = at
	}
	if kind.state != "" && e.Source != "compact" { // that happens while it works
		s.State = kind.state
	}
	if kind.state != "" && before.State != s.State {
		s.Since = at
	}
	return s.withTool(e)
}

// withTool notes which tool the session uses after an event.
func (s AgentSession) withTool(e HookEvent) AgentSession {
	switch {
	case s.State != SessionWorking, e.Name == "UserPromptSubmit":
		s.Tool, s.ToolSince, s.Uses = "", time.Time{}, nil
	case e.Name == "PreToolUse":
		s.Tool, s.ToolSince = e.Tool, s.Last
		s.Uses = append(slices.Clone(s.Uses[max(0, len(s.Uses)-maxUses+1):]), e.UseID)
	case strings.HasPrefix(e.Name, "PostToolUse"):
		if len(s.Uses) == 0 || s.Uses[len(s.Uses)-1] == e.UseID {
			s.Tool, s.ToolSince = "", time.Time{}
		}
		s.Uses = slices.DeleteFunc(slices.Clone(s.Uses), func(id string) bool { return id == e.UseID })
	}
	return s
}

// Answered returns the session after something that it asked has ended, answered or not.
func (s AgentSession) Answered(q Question) AgentSession {
	if s.State == SessionOver || s.Last.After(q.Ended) {
		return s
	}
	s.Since, s.Last = q.Ended, q.Ended
	if !s.Noticed.Before(q.AskedAt) {
		s.Noticed = time.Time{}
	}
	return s
}

// At returns the session as it is at a time. asked is its question that somebody holds, nil for none.
func (s AgentSession) At(now time.Time, asked *Question) AgentSession {
	quiet := now.Sub(s.Last)
	switch {
	case s.State == SessionOver || s.Started.IsZero():
	case asked != nil:
		s.State, s.Since, s.QuestionID = SessionWaiting, asked.AskedAt, asked.ID
	case quiet >= sessionLife:
		s.State, s.Since, s.Tool, s.ToolSince = SessionOver, s.Last.Add(sessionLife), "", time.Time{}
	case !s.Noticed.IsZero():
		s.State, s.Since = SessionWaiting, s.Noticed
	case s.State == SessionWorking && quiet >= silentAfter:
		s.State, s.Since = SessionSilent, s.Last
	}
	return s
}

// Gone reports whether a session, as returned by At, ended so long ago that it is forgotten.
func (s AgentSession) Gone(now time.Time) bool {
	return s.State == SessionOver && now.Sub(s.Since) >= sessionLife
}

// CompareSessions is the order of lists: those that wait first, longest first, then the others, newest first, and ended
// ones last.
func CompareSessions(a, b AgentSession) int {
	place := map[SessionState]int{SessionWaiting: -1, SessionOver: 1}
	newest := b.Since.Compare(a.Since)
	if a.State == SessionWaiting {
		newest = -newest
	}
	return cmp.Or(place[a.State]-place[b.State], newest, cmp.Compare(a.ID, b.ID), cmp.Compare(a.Asker, b.Asker))
}
