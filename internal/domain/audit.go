package domain

import (
	"context"
	"time"
)

// Action is what was done in a change.
type Action string

const (
	ProjectAdded      Action = "project.added"
	ProjectChanged    Action = "project.changed"
	ProjectRemoved    Action = "project.removed"
	ProjectRestored   Action = "project.restored"
	ProjectSwitched   Action = "project.switched" // made the active one
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

	SignedIn  Action = "sign_in.completed" // at the identity provider; the credentials are stored
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

// Change is what somebody changes.
type Change struct {
	Action  Action
	Subject string // what was changed
	Detail  string // how it was before and is now, without secrets
	// Project is the one that the change stays within, "" when it does not stay within one.
	Project string
}

// AuditEntry is a change that somebody made.
type AuditEntry struct {
	ID        int64 // grows from one entry to the next
	At        time.Time
	Who       string
	Via       Via
	Role      Role // "" where the change needed none
	Action    Action
	Subject   string
	Detail    string
	RequestID string // "" for a change that no HTTP request asked for
}

// NewAuditEntry returns the entry of a change that an actor makes at a time.
func NewAuditEntry(at time.Time, a Actor, c Change) AuditEntry {
	e := AuditEntry{
		At: at, Who: CutText(a.Who), Via: a.Via, Role: a.Role, Action: c.Action, Subject: CutText(c.Subject), Detail: CutText(c.Detail),
		RequestID: a.RequestID,
	}
	if e.Who == "" {
		e.Who = "unknown"
	}
	return e
}

// AuditQuery asks for a page of entries, the newest first.
type AuditQuery struct {
	Before int64 // an id; 0 is after the newest
	Limit  int
	// What the entries must be like; "" is anything.
	Who    string
	Action Action
	Text   string // part of who, subject or detail
}

// AuditPage is a page of entries, the newest first.
type AuditPage struct {
	Entries []AuditEntry
	More    bool // older ones follow
}

type auditKey struct{}

// WithAudit returns a context for one change in the store, which stores the entry in the same transaction.
func WithAudit(ctx context.Context, e AuditEntry) context.Context {
	return context.WithValue(ctx, auditKey{}, e)
}

// AuditOf returns the entry that is to be stored with the change of this context, false when there is none.
func AuditOf(ctx context.Context) (AuditEntry, bool) {
	e, ok := ctx.Value(auditKey{}).(AuditEntry)
	return e, ok
}
