package domain

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Role is what somebody may do. Each role includes the ones before it.
type Role string

const (
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
	// RoleWall is for links of wall displays: they show the wall, and nothing else.
	RoleWall Role = "wall"
)

// Roles are all roles, lowest first.
var Roles = []Role{RoleViewer, RoleOperator, RoleAdmin}

// Allows reports whether r suffices where needed is required.
func (r Role) Allows(needed Role) bool {
	have := slices.Index(Roles, r)
	return have >= 0 && have >= slices.Index(Roles, needed)
}

// CheckTokenRole returns an Invalid error unless a named token may have the role r.
func CheckTokenRole(r Role) error {
	if !slices.Contains(Roles, r) && r != RoleWall {
		return Errorf(Invalid, "role: must be viewer, operator, admin or wall")
	}
	return nil
}

type Via string

const (
	ViaOpen       Via = "open"        // no authentication is set up
	ViaAdminToken Via = "admin_token" // from the configuration
	ViaToken      Via = "token"       // a named token
	ViaLogin      Via = "login"       // an OpenID Connect provider
	ViaProxy      Via = "proxy"       // the headers of a trusted proxy
	ViaAgent      Via = "agent"       // an agent's own secret
	ViaBot        Via = "bot"         // a command in a chat room
	ViaCallback   Via = "callback"    // the callback of a sign-in, in a browser without a session
	ViaGateway    Via = "gateway"     // the gateway itself, because of its configuration or rules
)

// Channel is the part of the gateway that a caller uses, as shown in a story's history.
type Channel string

const (
	ChannelConsole Channel = "console"
	ChannelAPI     Channel = "api"
	ChannelMCP     Channel = "mcp"
	ChannelBot     Channel = "bot"
	ChannelHook    Channel = "hook" // of a coding agent
	ChannelGit     Channel = "git"  // a commit says so
)

type Actor struct {
	Who  string // a person, a token's name, an agent's label; "admin" for the admin token, and where none is needed
	Via  Via
	Role Role // "" for no role
	// Project limits changes to what belongs to one project; "" is no limit.
	Project string
	// Account is the id of the caller, which no name can imitate: sessions and limits use it. It is "" if only a name
	// is known.
	Account string
	// AgentID is the agent whose token the caller sent, "" for none. Such a caller has the role of a viewer, and in its
	// project may do what some routes and tools also allow to agents.
	AgentID string
	Channel Channel
	// Forwarded is whether a gateway has already passed the request on; it is not passed on to a project again.
	Forwarded bool
	// RequestID is the id of the HTTP request, "" outside one.
	RequestID string
}

func Administrator(via Via) Actor {
	return Actor{Who: "admin", Via: via, Role: RoleAdmin, Account: "admin"}
}

// Holder is the id that tells holders of claims and askers of questions apart. All callers of whom nothing is known are
// one holder.
func (a Actor) Holder() string { return cmp.Or(a.Account, "admin") }

// CheckScope returns a Forbidden error unless the actor may make changes in project, which is "" for changes outside
// projects.
func (a Actor) CheckScope(project string) error {
	if a.Project == "" || a.Project == project {
		return nil
	}
	return Errorf(Forbidden, "this token may change project '%s' only", a.Project)
}

type actorKey struct{}

// WithActor returns a context for the actor's requests. *a may still be changed until ActorOf is called.
func WithActor(ctx context.Context, a *Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns the actor of a context, the gateway itself if there is none.
func ActorOf(ctx context.Context) Actor {
	if a, ok := ctx.Value(actorKey{}).(*Actor); ok {
		return *a
	}
	return Actor{Who: "switchyard", Via: ViaGateway, Role: RoleAdmin}
}

// RoleLists assign roles to groups (values of a claim or header) and e-mail addresses.
type RoleLists struct{ Viewers, Operators, Admins []string }

// Of returns the highest role of a user in these groups with this e-mail address, "" for none. email must be "" unless
// it has been verified.
func (l RoleLists) Of(groups []string, email string) Role {
	switch {
	case listMatches(l.Admins, groups, email):
		return RoleAdmin
	case listMatches(l.Operators, groups, email):
		return RoleOperator
	case listMatches(l.Viewers, groups, email):
		return RoleViewer
	}
	return ""
}

func (l RoleLists) Empty() bool { return len(l.Viewers)+len(l.Operators)+len(l.Admins) == 0 }

// listMatches reports whether list contains one of the groups, compared exactly, or the e-mail address, ignoring the
// case of ASCII letters only: some other letters have an ASCII letter as their lower case. An entry with @ is an
// address: a group of the same spelling does not match it.
func listMatches(list, groups []string, email string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		if strings.Contains(entry, "@") {
			return lowerASCII(entry) == lowerASCII(email)
		}
		return slices.Contains(groups, entry)
	})
}

func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// Session is a person's login.
type Session struct {
	ID        string
	Who       string
	Account   string // as in Actor
	Via       Via
	Role      Role
	TokenID   string // the named token that it was made with, and ends with; "" for none
	CreatedAt time.Time
	LastSeen  time.Time
}

// NamedToken is a token issued by an administrator, or for an agent's command. The token itself is not stored.
type NamedToken struct {
	ID        string
	Name      string
	Role      Role
	Hash      string // SHA-256 of the token, hex
	Project   string // limits changes to that project; "" is no limit
	AgentID   string // the agent whose command it is for, "" for none
	CreatedBy string // "" if unknown
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	LastUsed  time.Time // zero: never
}

func (t NamedToken) Expired(now time.Time) bool {
	return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt)
}

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
	// StoryClaimed is also for claims that are taken over.
	StoryClaimed  Action = "story.claimed"
	StoryReleased Action = "story.released" // its claim has ended
	ReviewMade    Action = "story.reviewed"
	StoryMerged   Action = "story.merged" // a branch of it, by its project server

	QuestionWasAsked     Action = "question.asked"
	QuestionWasAnswered  Action = "question.answered"
	QuestionWasWithdrawn Action = "question.withdrawn"

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
	TeamTold      Action = "bot.told" // stories were posted to its rooms

	TargetCreated       Action = "target.created"
	TargetChanged       Action = "target.changed"
	TargetRemoved       Action = "target.removed"
	TargetTested        Action = "target.tested"
	TargetSecretChanged Action = "target.secret_changed"
	TargetResent        Action = "target.resent" // its last messages were sent again

	SignedIn  Action = "sign_in.completed" // the credentials have been stored
	SignedOut Action = "sign_in.removed"

	TokenCreated Action = "token.created"
	TokenRevoked Action = "token.revoked"
	SessionBegan Action = "session.began"
	SessionEnded Action = "session.ended"
)

var Actions = []Action{
	ProjectAdded, ProjectChanged, ProjectRemoved, ProjectRestored, ProjectSwitched, ProjectToolCalled,
	QuestionWasAsked, QuestionWasAnswered, QuestionWasWithdrawn,
	StoryCreated, StoryChanged, StoryClaimed, StoryReleased, ReviewMade, StoryMerged, AlertAcknowledged, AlertReopened,
	JoinTokenCreated, JoinTokenRevoked, AgentJoined, AgentAssigned, AgentLabelled, AgentRemoved,
	TargetCreated, TargetChanged, TargetRemoved, TargetTested, TargetSecretChanged, TargetResent,
	BotConfigured, BotTested, TeamTold, SignedIn, SignedOut, TokenCreated, TokenRevoked, SessionBegan, SessionEnded,
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
	Account   string // as in Actor; stored only for changes that repeat
	Times     int    // how often it was made within a minute; 0 for changes that do not repeat
}

func NewAuditEntry(at time.Time, a Actor, c Change) AuditEntry {
	e := AuditEntry{
		At: at, Who: cmp.Or(CutText(a.Who), "unknown"), Via: a.Via, Role: a.Role, Action: c.Action,
		Subject: CutText(c.Subject), Detail: CutText(c.Detail), RequestID: a.RequestID, Account: a.Account,
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
	// From and To, exclusive, are Unix milliseconds, 0 for no limit.
	From, To int64
}

// AuditPage is a page of entries, newest first.
type AuditPage struct {
	Entries []AuditEntry
	More    bool // there are older ones
}
