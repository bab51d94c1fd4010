// Package service holds every rule of the gateway. The JSON API, the console, the bot and the poller all call it,
// so that no rule is written twice. It knows no HTTP, no HTML, no cookies, no SQL and no TOML: what it needs of the
// outside it declares as small interfaces, next to the file that uses them.
package service

import (
	"context"
	"log/slog"
	"time"
)

// Store is everything that the service keeps. Each part is declared in the file that uses it.
type Store interface {
	projectStore
	eventStore
	agentStore
	// Ping reports whether the store answers.
	Ping(ctx context.Context) error
}

// Options are what a Service is built from. Durations must be positive.
type Options struct {
	Store Store
	Log   *slog.Logger
	// AgentTimeout is how long an agent may be silent before it leaves the list.
	AgentTimeout time.Duration
	// JoinTokenTTL is how long a join token can be redeemed.
	JoinTokenTTL time.Duration
	// Projects calls project servers.
	Projects ProjectServers
	BotFile  BotFile
	Bot      Bot
	// Provider is the identity provider, nil when sign-in is not set up. Credentials may be nil only then.
	Provider    SignInProvider
	Credentials CredentialsFile
}

// Service is the gateway's rules over its store. Its methods are safe for concurrent use.
type Service struct {
	store        Store
	log          *slog.Logger
	registry     registry
	projects     ProjectServers
	pipelines    pipelines
	fleet        *fleet
	joinTokenTTL time.Duration
	botFile      BotFile
	bot          Bot
	botSaves     chan struct{} // holds one value while a save is under way
	stream       stream

	lastEvents lastEvents
	flows      flows

	provider    SignInProvider
	credentials CredentialsFile
}

// New returns a Service over what o holds, with the registry loaded.
func New(ctx context.Context, o Options) (*Service, error) {
	s := &Service{
		store:        o.Store,
		log:          o.Log,
		projects:     o.Projects,
		pipelines:    pipelines{workers: crew{size: pipelineWorkers}, behind: crew{size: behindWorkers}},
		joinTokenTTL: o.JoinTokenTTL,
		botFile:      o.BotFile,
		bot:          o.Bot,
		botSaves:     make(chan struct{}, 1),
		flows:        flows{turn: make(chan struct{}, 1)},

		provider:    o.Provider,
		credentials: o.Credentials,
	}
	if err := s.loadRegistry(ctx); err != nil {
		return nil, err
	}
	if err := s.loadStream(ctx); err != nil {
		return nil, err
	}
	if err := s.loadFleet(ctx, o.AgentTimeout); err != nil {
		return nil, err
	}
	return s, nil
}

// Ready reports whether the service can do its work.
func (s *Service) Ready(ctx context.Context) error { return s.store.Ping(ctx) }
