package domain

import "time"

// LiveGateway is one of the gateways that share a database.
type LiveGateway struct {
	ID    string
	Name  string // of its host
	Since time.Time
	Leads bool // it follows the projects and runs the bot
	Asked bool // it is the one that handles this request
}
