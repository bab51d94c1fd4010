package domain

import (
	"slices"
	"time"
)

// Role is what somebody may do, each with all that the one before may.
type Role string

const (
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
)

// Allows reports whether whoever has this role may do what needs the other.
func (r Role) Allows(needed Role) bool { return r != "" && r.rank() >= needed.rank() }

func (r Role) rank() int { return slices.Index([]Role{RoleViewer, RoleOperator, RoleAdmin}, r) }

// Session is a login that has not ended.
type Session struct {
	ID        string
	Who       string
	Via       string // the way in
	Role      Role
	CreatedAt time.Time
	LastSeen  time.Time
}
