package domain

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
