package service

import (
	"context"
	"log/slog"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// Store is a database: its tables, preceded by what each engine does in its own way and what tests replace.
type Store interface {
	All() *store.Tables
	Ping(ctx context.Context) error
	Size(ctx context.Context) (size, free int64, err error)
	Identity(ctx context.Context) (string, error)
	TryWrite(ctx context.Context) error
	AppendEvents(ctx context.Context, reads []domain.FeedRead) (domain.AppendResult, error)
	Events(ctx context.Context, q domain.EventQuery) (domain.EventPage, error)
	EventProjects(ctx context.Context) ([]string, error)
	ExpiredEvents(ctx context.Context, e domain.ExpiryQuery, limit int) (ids []int64, err error)
	RemoveEvents(ctx context.Context, token int64, ids []int64) error
	SaveAgentSessions(ctx context.Context, now, gone []domain.AgentSession) error
	SaveBeats(ctx context.Context, beats []domain.AgentBeat) error
	ProjectVisits(ctx context.Context, projects []string, newest int) (map[string]*domain.ProjectVisits, error)
	ObserveVisits(ctx context.Context, token int64, observed ...domain.Observation) ([]domain.Visit, []string, error)
	StoryNames(ctx context.Context, stories []domain.StoryKey) (map[domain.StoryKey]domain.NamedStory, error)
	Targets(ctx context.Context) ([]domain.Target, error)
}

// database has all methods of the tables; those of Store take precedence.
type database struct {
	*store.Tables
	Store
}

// Options are what a Service is built from. Durations must be positive.
type Options struct {
	Store        Store
	Changes      Changes           // made by other gateways on the same database, nil if there are none
	Leadership   domain.Leadership // nil if this gateway is alone
	Gateways     GatewayList       // nil if this gateway is alone
	Log          *slog.Logger
	AgentTimeout time.Duration // how long an agent may be silent before it is removed from the list
	KeepEvents   time.Duration // 0: forever
	JoinTokenTTL time.Duration // how long a join token is valid
	// PermissionRole is who may answer questions for a permission; operators by default.
	PermissionRole domain.Role
	// PublicURL is the console's address in messages, "" for messages without links.
	PublicURL string
	Messenger Messenger
	// Prices are for models whose clients do not report the cost of a call.
	Prices   map[string]domain.Price
	Budgets  domain.Budgets
	Projects ProjectServers
	Stories  StoryServers
	Tools    ToolServers
	BotFile  BotFile
	Bot      BotRunner
	// BotOperators are the user ids that may command the bot.
	BotOperators []string
	SharedBot    *SharedBot                 // to share the bot with other gateways, nil if there are none
	Observe      func(added []domain.Event) // unless nil, called with the events that this gateway has stored
	Provider     SignInProvider             // nil if sign-in is not set up
	Credentials  CredentialsFile            // nil only if Provider is
	SignInSetup  SignInSetup

	store *database // a layer over Store
}

// GatewayList lists the live gateways that share the store, sorted by when they started.
type GatewayList interface {
	LiveGateways(ctx context.Context) ([]domain.LiveGateway, error)
}
