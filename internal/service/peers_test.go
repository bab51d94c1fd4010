package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
	"switchyard/internal/service"
	"switchyard/internal/store/postgres"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m.Run)) }

// peer is one of several gateways on one PostgreSQL database.
type peer struct {
	*testGateway
	db   *postgres.DB
	bot  *countingBot
	runs atomic.Bool // whether it leads
	file *memoryFile
	told atomic.Int64 // how often it has stored the state of the bot

	boards servers
}

// countedStore counts in told.
type countedStore struct {
	service.BotStore
	*peer
}

func (s countedStore) SetBotRun(ctx context.Context, token int64, r domain.BotRun) error {
	s.told.Add(1)
	return s.BotStore.SetBotRun(ctx, token, r)
}

func (p *peer) Leads() bool { return p.runs.Load() }

func (p *peer) Token() (int64, bool) { return 0, p.runs.Load() }

func (p *peer) Changed() <-chan struct{} { return nil }

// memoryFile is a bot's configuration file in memory.
type memoryFile struct{ config domain.BotConfig }

func (f *memoryFile) Load() (domain.BotConfig, error) { return f.config, nil }

func (f *memoryFile) Save(c domain.BotConfig) error { f.config = c; return nil }

func (f *memoryFile) Name() string { return "bot.toml" }

// countingBot is a bot that is connected to a room.
type countingBot struct {
	start    func(context.Context) (domain.BotConfig, error)
	mu       sync.Mutex
	restarts int
	tests    int
	config   domain.BotConfig
}

func (b *countingBot) Restart(ctx context.Context) error {
	c, err := b.start(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.restarts++
	b.config = c
	return err
}

func (b *countingBot) Tell(context.Context, domain.Announcement) error { return nil }

func (b *countingBot) SendTest(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tests++; b.tests > 1 {
		return domain.Errorf(domain.BadGateway, "not sent to #qa")
	}
	return nil
}

func (b *countingBot) Posted(context.Context) (int64, error) { return math.MaxInt64, nil }

func (b *countingBot) Status() domain.BotStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	return domain.BotStatus{Transport: b.config.Transport, State: domain.BotConnected, Since: time.UnixMilli(4711), Rooms: []string{"#qa"}}
}

func (b *countingBot) restarted() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.restarts
}

func (b *countingBot) tested() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tests
}

// severalGateways returns n gateways on one database, which read each other's changes and store their agents' heartbeats. The first
// one runs the bot.
func severalGateways(t *testing.T, n int) []*peer {
	t.Helper()
	url := pgtest.Database(t)
	peers := make([]*peer, n)
	for i := range peers {
		peers[i] = &peer{file: &memoryFile{domain.BotConfig{Transport: domain.BotMatrix}}}
		peers[i].runs.Store(i == 0)
		peers[i].open(t, url, fmt.Sprintf("gateway %d", i+1))
	}
	return peers
}

func (p *peer) open(t *testing.T, url, name string) {
	t.Helper()
	db, err := postgres.Open(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	p.db, p.bot = db, &countingBot{}
	s, err := service.New(t.Context(), service.Options{
		Leadership: p, Projects: &p.boards, Store: db, Changes: db, Log: slog.New(slog.DiscardHandler), AgentTimeout: 3 * held, JoinTokenTTL: time.Hour, Bot: p.bot, BotFile: p.file,
		SharedBot: &service.SharedBot{Store: countedStore{db, p}, Leader: p, Gateway: name},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.bot.start = s.Bot.Starting().Config
	p.testGateway = &testGateway{Service: s, t: t}
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	follow := func(ctx context.Context) error {
		return s.Events.Follow(ctx, db.Changed)
	}
	for _, run := range []func(context.Context) error{db.Run, s.Sync, s.Agents.Run, follow} {
		loops.Go(func() { _ = run(ctx) })
	}
	t.Cleanup(func() { cancel(); loops.Wait(); db.Close() })
}
