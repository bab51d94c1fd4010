package domain

import "time"

// NamedToken is a token that an administrator gave out, or that an agent has for its command. The token itself is known only
// to those it was given to.
type NamedToken struct {
	ID        string
	Name      string
	Role      Role
	Hash      string // SHA-256 of the token, hex
	Project   string // limits changes to that project; "" is no limit
	AgentID   string // the agent that it was made for, "" for none
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	LastUsed  time.Time // zero: never
}

// Expired reports whether the token has expired at now.
func (t NamedToken) Expired(now time.Time) bool {
	return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt)
}

// CheckTokenName returns an Invalid error unless name, trimmed already, can be a named token's: the rules are those of
// projects' names.
func CheckTokenName(name string) error { return CheckProjectName(name) }
