package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

const agentTimeout = 45 * time.Second

// failingStore refuses to save heartbeats while broken.
type failingStore struct {
	*sqlite.DB
	broken bool
}

func (f *failingStore) SaveBeats(ctx context.Context, beats []domain.AgentBeat) error {
	if f.broken {
		return errors.New("disk on fire")
	}
	return f.DB.SaveBeats(ctx, beats)
}

// testGateway is a service over a database that survives its restarts.
type testGateway struct {
	*service.Service
	t     testing.TB
	store *failingStore
}

func openGateway(t testing.TB, dir string) *testGateway {
	t.Helper()
	db, err := sqlite.Open(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	g := &testGateway{t: t, store: &failingStore{DB: db}}
	g.restart()
	return g
}

// restart replaces the service, as when a gateway is killed and restarted.
func (g *testGateway) restart() {
	g.t.Helper()
	s, err := service.New(context.Background(), service.Options{
		Store: g.store, Log: slog.New(slog.DiscardHandler), AgentTimeout: agentTimeout, JoinTokenTTL: time.Hour,
	})
	if err != nil {
		g.t.Fatal(err)
	}
	g.Service = s
}

func (g *testGateway) join(label string) domain.Agent {
	g.t.Helper()
	token, _, err := g.Agents.CreateJoinToken(context.Background(), "")
	if err != nil {
		g.t.Fatal(err)
	}
	a, _, err := g.Agents.Join(context.Background(), token, &label, "1.0")
	if err != nil {
		g.t.Fatal(err)
	}
	return a
}

func (g *testGateway) beat(id string, b service.Heartbeat) domain.Agent {
	g.t.Helper()
	a, err := g.Agents.Heartbeat(context.Background(), id, b)
	if err != nil {
		g.t.Fatal(err)
	}
	return a
}

func (g *testGateway) assign(id, project string) {
	g.t.Helper()
	if _, err := g.Agents.Assign(context.Background(), id, project); err != nil {
		g.t.Fatal(err)
	}
}

func (g *testGateway) project(name, url string) {
	g.t.Helper()
	if _, err := g.Projects.Ensure(context.Background(), name, url, nil); err != nil {
		g.t.Fatal(err)
	}
}

// run runs the write-behind until the returned function is called.
func (g *testGateway) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := g.Agents.Run(ctx); err != nil {
			g.t.Error(err)
		}
	})
	return func() { cancel(); wg.Wait() }
}

func (g *testGateway) wantAlive(labels ...string) {
	g.t.Helper()
	var got []string
	for _, a := range g.Agents.Alive() {
		got = append(got, a.Label)
	}
	if !slices.Equal(got, labels) {
		g.t.Errorf("alive are %q, want %q", got, labels)
	}
}

func (g *testGateway) wantPresence(id string, want domain.AgentPresence) {
	g.t.Helper()
	for _, a := range g.Agents.All() {
		if a.ID == id {
			if a.Presence != want {
				g.t.Errorf("presence of %s is %s, want %s", a.Label, a.Presence, want)
			}
			return
		}
	}
	if want != "" {
		g.t.Errorf("agent %s has no identity any more", id)
	}
}

func state(s domain.AgentState) service.Heartbeat { return service.Heartbeat{State: &s} }

// inBubble runs fn in virtual time with a new gateway.
func inBubble(t *testing.T, fn func(t *testing.T, g *testGateway)) {
	dir := storetest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		g := openGateway(t, dir)
		defer g.store.Close()
		g.project("alpha", "http://alpha")
		g.project("beta", "http://beta")
		fn(t, g)
	})
}

func TestAgentIsAliveWhileItIsSeen(t *testing.T) {
	inBubble(t, func(t *testing.T, g *testGateway) {
		silent, beating := g.join("silent"), g.join("beating")
		time.Sleep(agentTimeout - time.Second)
		g.wantAlive("beating", "silent")
		g.beat(beating.ID, service.Heartbeat{})
		time.Sleep(2 * time.Second)
		g.wantAlive("beating")
		g.wantPresence(silent.ID, domain.AgentLost)
		g.beat(silent.ID, service.Heartbeat{})
		g.wantAlive("beating", "silent")
	})
}

func TestOpenHeartbeatKeepsAlive(t *testing.T) {
	inBubble(t, func(t *testing.T, g *testGateway) {
		a := g.join("builder")
		var wg sync.WaitGroup
		wg.Go(func() {
			began := time.Now()
			g.beat(a.ID, service.Heartbeat{Wait: time.Hour})
			if held := time.Since(began); held != agentTimeout/3 {
				t.Errorf("held for %v, want a third of the agent timeout", held)
			}
		})
		time.Sleep(agentTimeout / 3)
		wg.Wait()
		time.Sleep(agentTimeout)
		g.wantAlive("builder") // its heartbeat was open until then
		time.Sleep(time.Second)
		g.wantAlive()
	})
}

func TestStoppedUnlistsAtOnceAndKeepsIdentity(t *testing.T) {
	inBubble(t, func(t *testing.T, g *testGateway) {
		a := g.join("builder")
		g.assign(a.ID, "alpha")
		g.beat(a.ID, state(domain.AgentStopped))
		g.wantAlive()
		g.wantPresence(a.ID, domain.AgentLeft)
		g.assign(a.ID, "beta") // works for every agent with an identity
		again := g.beat(a.ID, service.Heartbeat{})
		if again.State != domain.AgentIdle || again.Project != "beta" {
			t.Errorf("back is %+v, want idle and assigned to beta", again)
		}
		g.wantAlive("builder")
		g.beat(a.ID, state(domain.AgentFailed))
		if last := g.beat(a.ID, service.Heartbeat{}); last.State != domain.AgentFailed {
			t.Errorf("without a state it became %s, want the last one", last.State)
		}
	})
}

func TestSilentIdentityEndsAfterSevenDays(t *testing.T) {
	inBubble(t, func(t *testing.T, g *testGateway) {
		lost, stopped, kept := g.join("lost"), g.join("stopped"), g.join("kept")
		g.beat(stopped.ID, state(domain.AgentStopped))
		for range 7 {
			time.Sleep(24*time.Hour - time.Minute)
			g.beat(kept.ID, service.Heartbeat{})
		}
		g.wantPresence(lost.ID, domain.AgentLost)
		stop := g.run()
		defer stop()
		time.Sleep(3 * time.Minute)
		g.wantPresence(lost.ID, domain.AgentLost)
		g.wantPresence(stopped.ID, domain.AgentLeft)
		time.Sleep(10 * time.Minute)
		g.wantPresence(lost.ID, "")
		g.wantPresence(stopped.ID, "")
		g.wantPresence(kept.ID, domain.AgentLost)
		if _, err := g.Agents.Heartbeat(t.Context(), lost.ID, service.Heartbeat{}); domain.CodeOf(err) != domain.Unauthorized {
			t.Errorf("a heartbeat of an ended identity: %v, want unauthorized", err)
		}
	})
}

func TestGatewayThatWasOffForWeeksGivesAgentsTimeToComeBack(t *testing.T) {
	inBubble(t, func(t *testing.T, g *testGateway) {
		a := g.join("builder")
		time.Sleep(30 * 24 * time.Hour)
		g.restart()
		stop := g.run()
		defer stop()
		g.wantAlive()
		time.Sleep(time.Minute)
		g.beat(a.ID, service.Heartbeat{})
		time.Sleep(5 * time.Minute)
		g.wantPresence(a.ID, domain.AgentLost)
	})
}

func TestAgentsAreOrderedByLabelThenID(t *testing.T) {
	inBubble(t, func(t *testing.T, g *testGateway) {
		for _, label := range []string{"b", "ä", "B", "a", "b"} {
			g.join(label)
		}
		g.wantAlive("B", "a", "b", "b", "ä")
		if all := g.Agents.Alive(); all[2].ID > all[3].ID {
			t.Error("agents of one label are not ordered by id")
		}
	})
}

// TestAssigningWhileProjectsVanish: memory and store agree, and no agent stays assigned to a removed project.
func TestAssigningWhileProjectsVanish(t *testing.T) {
	g := openGateway(t, storetest.Dir(t))
	defer g.store.Close()
	ctx := t.Context()
	agents := []domain.Agent{g.join("a"), g.join("b"), g.join("c")}
	var wg sync.WaitGroup
	for i, a := range agents {
		wg.Go(func() {
			for n := range 50 {
				name := fmt.Sprint("p", (n+i)%3)
				_, _ = g.Agents.Assign(ctx, a.ID, name) // the project may be gone
			}
		})
	}
	wg.Go(func() {
		for n := range 50 {
			name := fmt.Sprint("p", n%3)
			g.project(name, "http://p")
			if n%2 == 0 {
				_, _ = g.Projects.Remove(ctx, name)
			}
		}
	})
	wg.Wait()
	shown := map[string]string{}
	for _, a := range g.Agents.All() {
		if a.Project != "" {
			shown[a.ID] = a.Project
		}
	}
	records, err := g.store.AgentRecords(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Project != shown[r.ID] {
			t.Errorf("%s is at %q in the store and at %q in memory", r.Label, r.Project, shown[r.ID])
		}
		if _, ok := g.Projects.Registry().Find(r.Project); r.Project != "" && !ok {
			t.Errorf("%s is at %q, which is gone", r.Label, r.Project)
		}
	}
}

func TestCommandThatKeepsFailingIsAnAlert(t *testing.T) {
	inBubble(t, func(t *testing.T, g *testGateway) {
		agent, began := g.join("builder"), time.Time{}
		for i, step := range []struct {
			state   domain.AgentState
			after   time.Duration
			failing bool
		}{
			{domain.AgentRunning, 0, false},
			{domain.AgentFailed, 2 * time.Minute, true},
			{domain.AgentRunning, time.Second, true}, // started again, and not well yet
			{domain.AgentFailed, time.Second, true},
			{domain.AgentRunning, 10 * time.Second, true},
			{domain.AgentRunning, 61 * time.Second, false},
			{domain.AgentFailed, time.Second, true},
			{domain.AgentIdle, time.Second, false},
		} {
			time.Sleep(step.after)
			g.beat(agent.ID, service.Heartbeat{State: &step.state})
			known, _ := g.Agents.Find(agent.ID)
			if known.FailingSince.IsZero() == step.failing {
				t.Errorf("step %d, %s: failing since %v", i, step.state, known.FailingSince)
			}
			switch i {
			case 1:
				began = known.FailingSince
			case 4:
				if !known.FailingSince.Equal(began) {
					t.Errorf("failing since %v, want %v, the first time", known.FailingSince, began)
				}
			}
		}
	})
}
