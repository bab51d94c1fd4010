package service

import (
	"context"
	"log/slog"
	"time"

	"switchyard/internal/domain"
)

// Store keeps everything that the service stores. Each part is declared in the file that uses it.
type Store interface {
	projectStore
	eventStore
	agentStore
	accessStore
	storyStore
	visitStore
	historyStore
	flowStore
	questionStore
	sessionStore
	targetStore
	acknowledgementStore
	auditStore
	claimStore
	reviewStore
	costStore
	retentionStore
	// Ping returns an error if the store cannot be reached.
	Ping(ctx context.Context) error
}

// Options are what a Service is built from. Durations must be positive.
type Options struct {
	Store        Store
	Changes      Changes     // by other gateways on the same database, nil if there are none
	Leadership   Leadership  // nil if this gateway is alone
	Gateways     GatewayList // nil if this gateway is alone
	Log          *slog.Logger
	AgentTimeout time.Duration // how long an agent may be silent before it is removed from the list
	KeepEvents   time.Duration // 0: for ever
	JoinTokenTTL time.Duration // how long a join token is valid
	// PermissionRole is who may answer questions for a permission; operators by default.
	PermissionRole domain.Role
	// PublicURL is the console's address in messages, "" for messages without links.
	PublicURL string
	Messenger Messenger
	// Prices are those of models whose clients do not say what a call costs.
	Prices   map[string]domain.Price
	Projects ProjectServers
	Stories  StoryServers
	Tools    ToolServers
	BotFile  BotFile
	Bot      BotRunner
	// BotOperators are the user ids that may command the bot.
	BotOperators []string
	SharedBot    *SharedBot                 // to share the bot with other gateways, nil if there are none
	Observe      func(added []domain.Event) // unless nil, is called with the events that this gateway has stored
	Provider     SignInProvider             // nil if sign-in is not set up
	Credentials  CredentialsFile            // nil only then
	SignInSetup  SignInSetup
}

// GatewayList lists the live gateways that share the store, sorted by their time of starting.
type GatewayList interface {
	LiveGateways(ctx context.Context) ([]domain.LiveGateway, error)
}
