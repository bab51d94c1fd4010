package domain

import "time"

// LiveGateway is one of the gateways that share a database.
type LiveGateway struct {
	ID      string
	Name    string // of its host
	Since   time.Time
	Feeds   int  // how many projects it follows
	Duties  int  // how many duties it has, including the projects that it follows
	RunsBot bool // it runs the bot
	Asked   bool // it is the one that handles this request
}
