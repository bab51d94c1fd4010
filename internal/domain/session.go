package domain

import "time"

// Session is a login that has not ended.
type Session struct {
	ID        string
	Who       string
	Via       Via
	Role      Role
	TokenID   string // of the named token that it was made with, and that it ends with; "" for none
	CreatedAt time.Time
	LastSeen  time.Time
}
