package domain

import "time"

// Topic is what a change was about. If several gateways share a database, each notifies the others of the topics of its
// changes.
type Topic string

const (
	TopicProjects         Topic = "projects" // the registry, and which project is active
	TopicAgents           Topic = "agents"   // agents, their states and assignments, and join tokens
	TopicAccess           Topic = "access"   // named tokens and sessions
	TopicAcknowledgements Topic = "acknowledgements"
	TopicBot              Topic = "bot" // the bot's configuration
	TopicEvents           Topic = "events"
	TopicVisits           Topic = "visits" // the stages in which stories are and have been
	TopicLease            Topic = "lease"  // the leader's lease was granted or released
)

// LiveGateway is one of the gateways that share a database.
type LiveGateway struct {
	ID    string
	Name  string // of its host
	Since time.Time
	Leads bool // it follows the projects and runs the bot
	Asked bool // it is the one that handles this request
}

// ErrNotLeader is returned for a write that was refused because another gateway has taken over the lead.
var ErrNotLeader = Errorf(Unavailable, "another gateway has taken over")
