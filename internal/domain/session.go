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
