package domain

import "time"

// Role is what somebody may do, each with all that the one before may.
type Role string

const (
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
)

// Session is a login that has not ended.
type Session struct {
	ID        string
	Who       string
	Via       string // the way in
	Role      Role
	CreatedAt time.Time
	LastSeen  time.Time
}
