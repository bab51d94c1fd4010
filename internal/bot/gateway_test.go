package bot_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/bot/matrix"
	"switchyard/internal/bot/slack"
	"switchyard/internal/bottest"
	"switchyard/internal/domain"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
	"switchyard/internal/waittest"
)

// fakeGateway is the service as the bot sees it.
// fakeSessions are those of coding agents.
type fakeSessions []domain.AgentSession

func (s *fakeSessions) List() []domain.AgentSession { return slices.Clone(*s) }

type fakeGateway struct {
	sessions  fakeSessions
	mu        sync.Mutex
	config    domain.BotConfig
	err       error // of Config
	events    []domain.Event
	changed   chan struct{}
	active    string
	agents    []domain.Agent
	projects  []domain.Project
	questions fakeQuestions
	fakeStories
}

func newGateway() *fakeGateway {
	return &fakeGateway{changed: make(chan struct{}), projects: []domain.Project{{Name: "alpha"}, {Name: "beta two"}}, agents: []domain.Agent{
		{ID: "a1", Label: "builder 1", State: domain.AgentIdle},
		{ID: "a2", Label: "twin", State: domain.AgentRunning},
		{ID: "a3", Label: "twin", State: domain.AgentRunning},
	}}
}

// seen is the gateway as the bot sees it.
func (g *fakeGateway) seen() bot.Gateway {
	return bot.Gateway{Bot: g, Events: g, Projects: g, Pipelines: g, Alerts: g, Agents: g, Stories: g, Search: g, Flow: g, Questions: &g.questions, Sessions: &g.sessions}
}

// happen appends one event to the stream.
func (g *fakeGateway) happen(project string, kind domain.EventType, fields string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := int64(len(g.events) + 1)
	raw := fmt.Sprintf(`{"type":%q,"timestamp_ms":%d,%s}`, kind, id, fields)
	record, err := domain.ParseRecord(json.RawMessage(raw))
	if err != nil {
		panic(raw)
	}
	record.Type = kind // as a record of a feed, feed_gap would be a foreign type
	g.events = append(g.events, domain.Event{ID: id, Project: project, Record: record})
	close(g.changed)
	g.changed = make(chan struct{})
}

// move appends a stage transition of story n.
func (g *fakeGateway) move(project string, n int) {
	g.happen(project, domain.StageTransition, fmt.Sprintf(`"story_id":"s%d","story_name":"Story %d","from_stage":"2_current","to_stage":"3_qa"`, n, n))
}

func (g *fakeGateway) configure(c domain.BotConfig, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.config, g.err = c, err
}

func (g *fakeGateway) Config(context.Context) (domain.BotConfig, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.config, g.err
}

func (g *fakeGateway) Page(_ context.Context, q domain.EventQuery) (domain.EventPage, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q.Backward {
		newest := slices.Clone(g.events[max(0, len(g.events)-q.Limit):])
		slices.Reverse(newest)
		return domain.EventPage{Events: newest, More: len(newest) < len(g.events)}, nil
	}
	from := min(int(q.After), len(g.events))
	to := min(from+q.Limit, len(g.events))
	return domain.EventPage{Events: slices.Clone(g.events[from:to]), More: to < len(g.events)}, nil
}

func (g *fakeGateway) LastID() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return int64(len(g.events))
}

func (g *fakeGateway) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

func (g *fakeGateway) Registry() *domain.Registry {
	g.mu.Lock()
	defer g.mu.Unlock()
	return &domain.Registry{Active: g.active, Projects: g.projects}
}

func (g *fakeGateway) Switch(_ context.Context, name string) error {
	if _, ok := g.Registry().Find(name); !ok {
		return domain.Errorf(domain.NotFound, "project '%s' does not exist", name)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active = name
	return nil
}

func (g *fakeGateway) All(context.Context, time.Duration) (*domain.Registry, []domain.ProjectPipeline) {
	reason := "waiting: <API> key"
	return g.Registry(), []domain.ProjectPipeline{
		{Project: "alpha", Reachable: true, Stages: []domain.Stage{
			{Name: "2_current", Items: append([]domain.Item{{StoryID: "12_pay", StoryName: "Pay", Blocked: reason}}, g.failed...)},
			{Name: "3_qa", Items: []domain.Item{{StoryID: "9_search", Since: time.Now().Add(-25 * time.Hour)}}},
			{Name: "5_done"},
		}},
		{Project: "beta two", Error: "connection refused", Stages: g.last},
	}
}

func (g *fakeGateway) StageWord(project, stage string) string {
	_, pipelines := g.All(context.Background(), 0)
	for _, p := range pipelines {
		if p.Project == project {
			return domain.StageWord(p.Stages, stage)
		}
	}
	return domain.StageTitle(stage)
}

// List returns more alerts than those of the pipelines.
func (g *fakeGateway) List(ctx context.Context) domain.Alerts {
	_, pipelines := g.All(ctx, 0)
	var found []domain.Alert
	for i := range pipelines {
		p := &pipelines[i]
		if !p.Reachable {
			found = append(found, domain.Alert{Kind: domain.AlertUnreachable, Project: p.Project, Reason: p.Error})
			continue
		}
		inIt, _ := domain.FindAlerts(p, time.Now())
		found = append(found, inIt...)
	}
	found = append(found,
		domain.Alert{Kind: domain.AlertAgentLost, Agent: "builder 4", Project: "alpha"},
		domain.Alert{Kind: domain.AlertClockAhead, Project: "alpha"})
	for i := range found {
		for _, taken := range g.taken {
			if taken.Key == found[i].Key() {
				found[i].Acknowledged = &taken
			}
		}
	}
	return domain.NewAlerts(found)
}

// Sentence and Forecast say what was asked for.
func (g *fakeGateway) Sentence(_ context.Context, _ *time.Location, projects ...string) (string, error) {
	return "the flow of " + projects[0], nil
}

func (g *fakeGateway) Forecast(_ context.Context, project string, items int) (string, error) {
	return fmt.Sprintf("%d items of %s", items, project), nil
}

func (g *fakeGateway) Alive() []domain.Agent {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.agents)
}

func (g *fakeGateway) Assign(_ context.Context, id, project string) (domain.Agent, error) {
	if project != "" {
		if _, ok := g.Registry().Find(project); !ok {
			return domain.Agent{}, domain.Errorf(domain.Invalid, "project '%s' does not exist", project)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.agents {
		if g.agents[i].ID == id {
			g.agents[i].Project = project
			return g.agents[i], nil
		}
	}
	return domain.Agent{}, domain.Errorf(domain.NotFound, "agent not found")
}

// process is the bot's part of a gateway process: it can be killed and started again on the same store.
type process struct {
	t          *testing.T
	gateway    *fakeGateway
	db         *sqlite.DB
	logs       *waittest.Log
	options    bot.Options
	supervisor *bot.Supervisor
	kill       func()
	mu         sync.Mutex // for tests that kill from another goroutine
}

func newProcess(t *testing.T, o bot.Options) *process {
	t.Helper()
	db, err := sqlite.Open(t.Context(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	o.Dial = bottest.Dial
	o.Transports = map[domain.BotTransport]func(bot.Options, map[string]domain.Secret) bot.Transport{"matrix": matrix.New, "team": slack.New}
	p := &process{t: t, gateway: newGateway(), db: db, logs: &waittest.Log{}, options: o}
	p.options.Log = slog.New(slog.NewTextHandler(p.logs, nil))
	if p.options.State == nil {
		p.options.State = db
	}
	p.options.Identity = db.Identity
	return p
}

// start starts the process again.
func (p *process) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	supervisor := bot.New(p.options)
	p.supervisor = supervisor
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = supervisor.Run(ctx, p.gateway.seen())
	}()
	p.kill = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	p.t.Cleanup(p.kill)
}

func (p *process) current() *bot.Supervisor {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.supervisor
}

// save configures the bot as the service does.
func (p *process) save(c domain.BotConfig) {
	p.t.Helper()
	p.gateway.configure(c, nil)
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	if err := p.supervisor.Restart(ctx); err != nil {
		p.t.Fatalf("restart: %v", err)
	}
}

// waitState returns the status once it has this state and its detail contains text.
func (p *process) waitState(state domain.BotState, text string) domain.BotStatus {
	p.t.Helper()
	var status domain.BotStatus
	eventually(p.t, func() string {
		status = p.supervisor.Status()
		if status.State == state && strings.Contains(status.Detail, text) {
			return ""
		}
		return fmt.Sprintf("status is %+v; want %s, %q", status, state, text)
	})
	return status
}

// waitNoDetail returns once the bot is connected and the status has no detail.
func (p *process) waitNoDetail() {
	p.t.Helper()
	eventually(p.t, func() string {
		if s := p.current().Status(); s.State != domain.BotConnected || s.Detail != "" {
			return fmt.Sprintf("status is %+v", s)
		}
		return ""
	})
}

// waitRooms returns once the bot is in n rooms.
func (p *process) waitRooms(n int) {
	p.t.Helper()
	eventually(p.t, func() string {
		if s := p.current().Status(); len(s.Rooms) != n {
			return fmt.Sprintf("status is %+v, want %d rooms", s, n)
		}
		return ""
	})
}

// eventually waits until check has no more complaints.
func eventually(t *testing.T, check func() string) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		complaint := check()
		if complaint == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(complaint)
		}
	}
}
