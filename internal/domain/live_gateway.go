package domain

import "time"

// LiveGateway is one of the gateways that share a database.
type LiveGateway struct {
	ID      string
	Name    string // of its host
	Since   time.Time
	Feeds   int  // how many projects it follows
	Duties  int  // what it does besides answering, following projects among that
	RunsBot bool // it runs the bot
	Asked   bool // it is the one that is asked
}
