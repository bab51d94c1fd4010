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
	"switchyard/internal/store"
)

const agentTimeout = 45 * time.Second

// failingStore refuses to save heartbeats while broken.
type failingStore struct {
	*store.DB
	broken bool
}

func (f *failingStore) SaveBeats(ctx context.Context, beats []domain.AgentBeat) error {
	if f.broken {
		return errors.New("disk on fire")
	}
	return f.DB.SaveBeats(ctx, beats)
}

// yardMaster is a service with a database that outlives it.
type yardMaster struct {
	*service.Service
	t     testing.TB
	store *failingStore
}

func openYard(t testing.TB, dir string) *yardMaster {
	t.Helper()
	db, err := store.Open(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	y := &yardMaster{t: t, store: &failingStore{DB: db}}
	y.restart()
	return y
}

// restart replaces the service as a gateway that was killed and started again.
func (y *yardMaster) restart() {
	y.t.Helper()
	s, err := service.New(context.Background(), service.Options{
		Store: y.store, Log: slog.New(slog.DiscardHandler), AgentTimeout: agentTimeout, JoinTokenTTL: time.Hour,
	})
	if err != nil {
		y.t.Fatal(err)
	}
	y.Service = s
}

func (y *yardMaster) join(label string) domain.Agent {
	y.t.Helper()
	token, _, err := y.Agents.CreateJoinToken(context.Background())
	if err != nil {
		y.t.Fatal(err)
	}
	a, _, err := y.Agents.Join(context.Background(), token, &label, "1.0")
	if err != nil {
		y.t.Fatal(err)
	}
	return a
}

func (y *yardMaster) beat(id string, b service.Heartbeat) domain.Agent {
	y.t.Helper()
	a, err := y.Agents.Heartbeat(context.Background(), id, b)
	if err != nil {
		y.t.Fatal(err)
	}
	return a
}

func (y *yardMaster) assign(id, project string) {
	y.t.Helper()
	name := &project
	if project == "" {
		name = nil
	}
	if _, err := y.Agents.Assign(context.Background(), id, name); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yardMaster) project(name, url string) {
	y.t.Helper()
	if _, err := y.Projects.Ensure(context.Background(), name, url, nil); err != nil {
		y.t.Fatal(err)
	}
}

// run runs the write-behind until the returned function is called.
func (y *yardMaster) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := y.Agents.Run(ctx); err != nil {
			y.t.Error(err)
		}
	})
	return func() { cancel(); wg.Wait() }
}

func (y *yardMaster) wantAlive(labels ...string) {
	y.t.Helper()
	var got []string
	for _, a := range y.Agents.Alive() {
		got = append(got, a.Label)
	}
	if !slices.Equal(got, labels) {
		y.t.Errorf("alive are %q, want %q", got, labels)
	}
}

func (y *yardMaster) wantPresence(id string, want domain.AgentPresence) {
	y.t.Helper()
	for _, a := range y.Agents.All() {
		if a.ID == id {
			if a.Presence != want {
				y.t.Errorf("presence of %s is %s, want %s", a.Label, a.Presence, want)
			}
			return
		}
	}
	if want != "" {
		y.t.Errorf("agent %s has no identity any more", id)
	}
}

func state(s domain.AgentState) service.Heartbeat { return service.Heartbeat{State: &s} }

// inBubble runs fn in fake time with a fresh yard.
func inBubble(t *testing.T, fn func(t *testing.T, y *yardMaster)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		y := openYard(t, dir)
		defer y.store.Close()
		y.project("alpha", "http://alpha")
		y.project("beta", "http://beta")
		fn(t, y)
	})
}

func TestAgentIsAliveWhileItIsSeen(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yardMaster) {
		silent, beating := y.join("silent"), y.join("beating")
		time.Sleep(agentTimeout - time.Second)
		y.wantAlive("beating", "silent")
		y.beat(beating.ID, service.Heartbeat{})
		time.Sleep(2 * time.Second)
		y.wantAlive("beating")
		y.wantPresence(silent.ID, domain.AgentLost)
		y.beat(silent.ID, service.Heartbeat{})
		y.wantAlive("beating", "silent")
	})
}

func TestOpenHeartbeatKeepsAlive(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yardMaster) {
		a := y.join("builder")
		var wg sync.WaitGroup
		wg.Go(func() {
			began := time.Now()
			y.beat(a.ID, service.Heartbeat{Wait: time.Hour})
			if held := time.Since(began); held != agentTimeout/3 {
				t.Errorf("held for %v, want a third of the agent timeout", held)
			}
		})
		time.Sleep(agentTimeout / 3)
		wg.Wait()
		time.Sleep(agentTimeout)
		y.wantAlive("builder") // its heartbeat was open until then
		time.Sleep(time.Second)
		y.wantAlive()
	})
}

func TestStoppedUnlistsAtOnceAndKeepsIdentity(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yardMaster) {
		a := y.join("builder")
		y.assign(a.ID, "alpha")
		y.beat(a.ID, state(domain.AgentStopped))
		y.wantAlive()
		y.wantPresence(a.ID, domain.AgentLeft)
		y.assign(a.ID, "beta") // works for every agent with an identity
		again := y.beat(a.ID, service.Heartbeat{})
		if again.State != domain.AgentIdle || again.AssignedProject == nil || *again.AssignedProject != "beta" {
			t.Errorf("back is %+v, want idle and assigned to beta", again)
		}
		y.wantAlive("builder")
		y.beat(a.ID, state(domain.AgentFailed))
		if last := y.beat(a.ID, service.Heartbeat{}); last.State != domain.AgentFailed {
			t.Errorf("without a state it became %s, want the last one", last.State)
		}
	})
}

func TestSilentIdentityEndsAfterSevenDays(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yardMaster) {
		lost, stopped, kept := y.join("lost"), y.join("stopped"), y.join("kept")
		y.beat(stopped.ID, state(domain.AgentStopped))
		for range 7 {
			time.Sleep(24*time.Hour - time.Minute)
			y.beat(kept.ID, service.Heartbeat{})
		}
		y.wantPresence(lost.ID, domain.AgentLost)
		stop := y.run()
		defer stop()
		time.Sleep(3 * time.Minute)
		y.wantPresence(lost.ID, domain.AgentLost)
		y.wantPresence(stopped.ID, domain.AgentLeft)
		time.Sleep(10 * time.Minute)
		y.wantPresence(lost.ID, "")
		y.wantPresence(stopped.ID, "")
		y.wantPresence(kept.ID, domain.AgentLost)
		if _, err := y.Agents.Heartbeat(t.Context(), lost.ID, service.Heartbeat{}); domain.CodeOf(err) != domain.Unauthorized {
			t.Errorf("a heartbeat of an ended identity: %v, want unauthorized", err)
		}
	})
}

func TestGatewayThatWasOffForWeeksGivesAgentsTimeToComeBack(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yardMaster) {
		a := y.join("builder")
		time.Sleep(30 * 24 * time.Hour)
		y.restart()
		stop := y.run()
		defer stop()
		y.wantAlive()
		time.Sleep(time.Minute)
		y.beat(a.ID, service.Heartbeat{})
		time.Sleep(5 * time.Minute)
		y.wantPresence(a.ID, domain.AgentLost)
	})
}

func TestAgentsAreOrderedByLabelThenID(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yardMaster) {
		for _, label := range []string{"b", "ä", "B", "a", "b"} {
			y.join(label)
		}
		y.wantAlive("B", "a", "b", "b", "ä")
		if all := y.Agents.Alive(); all[2].ID > all[3].ID {
			t.Error("agents of one label are not ordered by id")
		}
	})
}

// TestAssigningWhileProjectsVanish: memory and store agree, and no agent is left at a project that is gone.
func TestAssigningWhileProjectsVanish(t *testing.T) {
	y := openYard(t, t.TempDir())
	defer y.store.Close()
	ctx := t.Context()
	agents := []domain.Agent{y.join("a"), y.join("b"), y.join("c")}
	var wg sync.WaitGroup
	for i, a := range agents {
		wg.Go(func() {
			for n := range 50 {
				name := fmt.Sprint("p", (n+i)%3)
				_, _ = y.Agents.Assign(ctx, a.ID, &name) // the project may be gone
			}
		})
	}
	wg.Go(func() {
		for n := range 50 {
			name := fmt.Sprint("p", n%3)
			y.project(name, "http://p")
			if n%2 == 0 {
				_, _ = y.Projects.Remove(ctx, name)
			}
		}
	})
	wg.Wait()
	shown := map[string]string{}
	for _, a := range y.Agents.All() {
		if a.AssignedProject != nil {
			shown[a.ID] = *a.AssignedProject
		}
	}
	records, err := y.store.AgentRecords(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.AssignedProject != shown[r.ID] {
			t.Errorf("%s is at %q in the store and at %q in memory", r.Label, r.AssignedProject, shown[r.ID])
		}
		if _, ok := y.Projects.Registry().Find(r.AssignedProject); r.AssignedProject != "" && !ok {
			t.Errorf("%s is at %q, which is gone", r.Label, r.AssignedProject)
		}
	}
}
