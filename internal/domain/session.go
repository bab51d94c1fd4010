package domain

import "time"

// Session is a person's login.
type Session struct {
	ID        string
	Who       string
	Account   string // as an Actor has it
	Via       Via
	Role      Role
	TokenID   string // the named token that it was made with, and with which it ends; "" for none
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
	AgentID   string // the agent for whose command it is, "" for none
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	LastUsed  time.Time // zero: never
}

func (t NamedToken) Expired(now time.Time) bool {
	return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt)
}

// CheckTokenName returns an Invalid error unless name, already trimmed, is valid for a named token. The rules are those
// for projects.
func CheckTokenName(name string) error { return CheckProjectName(name) }
