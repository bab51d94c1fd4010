package domain

import "time"

type Action string

const (
	ProjectAdded      Action = "project.added"
	ProjectChanged    Action = "project.changed"
	ProjectRemoved    Action = "project.removed"
	ProjectRestored   Action = "project.restored"
	ProjectSwitched   Action = "project.switched" // made the active project
	ProjectToolCalled Action = "project.tool_called"

	StoryCreated Action = "story.created"
	StoryChanged Action = "story.changed"

	AlertAcknowledged Action = "alert.acknowledged"
	AlertReopened     Action = "alert.reopened"

	JoinTokenCreated Action = "join_token.created"
	JoinTokenRevoked Action = "join_token.revoked"
	AgentJoined      Action = "agent.joined"
	AgentAssigned    Action = "agent.assigned"
	AgentLabelled    Action = "agent.labelled"
	AgentRemoved     Action = "agent.removed"

	BotConfigured Action = "bot.configured"
	BotTested     Action = "bot.tested"

	SignedIn  Action = "sign_in.completed" // the credentials have been stored
	SignedOut Action = "sign_in.removed"

	TokenCreated Action = "token.created"
	TokenRevoked Action = "token.revoked"
	SessionBegan Action = "session.began"
	SessionEnded Action = "session.ended"
)

// Actions are all actions.
var Actions = []Action{
	ProjectAdded, ProjectChanged, ProjectRemoved, ProjectRestored, ProjectSwitched, ProjectToolCalled,
	StoryCreated, StoryChanged, AlertAcknowledged, AlertReopened,
	JoinTokenCreated, JoinTokenRevoked, AgentJoined, AgentAssigned, AgentLabelled, AgentRemoved,
	BotConfigured, BotTested, SignedIn, SignedOut, TokenCreated, TokenRevoked, SessionBegan, SessionEnded,
}

type Change struct {
	Action  Action
	Subject string // what was changed
	Detail  string // its state before and after, without secrets
	// Project is the project that the change is limited to, "" if it is not limited to one.
	Project string
	// Repeats says that an account may cause it often: those of one minute are one entry, which is kept for a shorter
	// time.
	Repeats bool
}

type AuditEntry struct {
	ID        int64 // increasing
	At        time.Time
	Who       string
	Via       Via
	Role      Role // "" if the change needed none
	Action    Action
	Subject   string
	Detail    string
	RequestID string // "" for a change without an HTTP request
	Account   string // as an Actor has it; stored only for changes that repeat
	Times     int    // how often it was made within a minute; 0 for changes that do not repeat
}

func NewAuditEntry(at time.Time, a Actor, c Change) AuditEntry {
	e := AuditEntry{
		At: at, Who: CutText(a.Who), Via: a.Via, Role: a.Role, Action: c.Action, Subject: CutText(c.Subject),
		Detail:    CutText(c.Detail),
		RequestID: a.RequestID, Account: a.Account,
	}
	if e.Who == "" {
		e.Who = "unknown"
	}
	if c.Repeats {
		e.Times = 1
	}
	return e
}

// AuditQuery selects a page of entries, newest first.
type AuditQuery struct {
	Before int64 // only entries with a smaller id; 0 for the newest page
	Limit  int
	// Only entries with these values; "" for any.
	Who    string
	Action Action
	Text   string // part of who, subject or detail
}

// AuditPage is a page of entries, newest first.
type AuditPage struct {
	Entries []AuditEntry
	More    bool // there are older ones
}
