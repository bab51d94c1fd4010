package domain

// Topic is what a change was about. Where several gateways share a database, each tells the others the topics of what it
// has changed.
type Topic string

const (
	TopicProjects         Topic = "projects" // the registry, and which project is active
	TopicAgents           Topic = "agents"   // agents, their states and assignments, and join tokens
	TopicAccess           Topic = "access"   // named tokens and sessions
	TopicAcknowledgements Topic = "acknowledgements"
	TopicBot              Topic = "bot" // the bot's configuration
	TopicEvents           Topic = "events"
	TopicDuties           Topic = "duties"   // gateways that join or leave, and duties given back
	TopicSignIn           Topic = "sign_in"  // sign-in flows
	TopicArrivals         Topic = "arrivals" // stories that came without an event
)
