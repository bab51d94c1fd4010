package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/service"
	"switchyard/internal/store"
	"switchyard/internal/yard"
)

const agentTimeout = 45 * time.Second

// failingStore refuses to save heartbeats while broken.
type failingStore struct {
	*store.DB
	broken bool
}

func (f *failingStore) SaveBeats(ctx context.Context, beats []yard.AgentBeat) error {
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

func (y *yardMaster) join(label string) yard.Agent {
	y.t.Helper()
	token, _, err := y.CreateToken(context.Background())
	if err != nil {
		y.t.Fatal(err)
	}
	a, _, err := y.JoinAgent(context.Background(), token, &label, "1.0")
	if err != nil {
		y.t.Fatal(err)
	}
	return a
}

func (y *yardMaster) beat(id string, b service.Heartbeat) yard.Agent {
	y.t.Helper()
	a, err := y.Heartbeat(context.Background(), id, b)
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
	if _, err := y.AssignAgent(context.Background(), id, name); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yardMaster) project(name, url string) {
	y.t.Helper()
	if _, err := y.EnsureProject(context.Background(), name, url, nil); err != nil {
		y.t.Fatal(err)
	}
}

// run runs the write-behind until the returned function is called.
func (y *yardMaster) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := y.RunAgents(ctx); err != nil {
			y.t.Error(err)
		}
	})
	return func() { cancel(); wg.Wait() }
}

func (y *yardMaster) wantAlive(labels ...string) {
	y.t.Helper()
	var got []string
	for _, a := range y.Agents() {
		got = append(got, a.Label)
	}
	if !slices.Equal(got, labels) {
		y.t.Errorf("alive are %q, want %q", got, labels)
	}
}

func (y *yardMaster) wantPresence(id string, want yard.AgentPresence) {
	y.t.Helper()
	for _, a := range y.AllAgents() {
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

func state(s yard.AgentState) service.Heartbeat { return service.Heartbeat{State: &s} }

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
		y.wantPresence(silent.ID, yard.AgentLost)
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
		y.beat(a.ID, state(yard.AgentStopped))
		y.wantAlive()
		y.wantPresence(a.ID, yard.AgentLeft)
		y.assign(a.ID, "beta") // works for every agent with an identity
		again := y.beat(a.ID, service.Heartbeat{})
		if again.State != yard.AgentIdle || again.AssignedProject == nil || *again.AssignedProject != "beta" {
			t.Errorf("back is %+v, want idle and assigned to beta", again)
		}
		y.wantAlive("builder")
		y.beat(a.ID, state(yard.AgentFailed))
		if last := y.beat(a.ID, service.Heartbeat{}); last.State != yard.AgentFailed {
			t.Errorf("without a state it became %s, want the last one", last.State)
		}
	})
}

func TestSilentIdentityEndsAfterSevenDays(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yardMaster) {
		lost, stopped, kept := y.join("lost"), y.join("stopped"), y.join("kept")
		y.beat(stopped.ID, state(yard.AgentStopped))
		for range 7 {
			time.Sleep(24*time.Hour - time.Minute)
			y.beat(kept.ID, service.Heartbeat{})
		}
		y.wantPresence(lost.ID, yard.AgentLost)
		stop := y.run()
		defer stop()
		time.Sleep(3 * time.Minute)
		y.wantPresence(lost.ID, yard.AgentLost)
		y.wantPresence(stopped.ID, yard.AgentLeft)
		time.Sleep(10 * time.Minute)
		y.wantPresence(lost.ID, "")
		y.wantPresence(stopped.ID, "")
		y.wantPresence(kept.ID, yard.AgentLost)
		if _, err := y.Heartbeat(t.Context(), lost.ID, service.Heartbeat{}); yard.CodeOf(err) != yard.Unauthorized {
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
		y.wantPresence(a.ID, yard.AgentLost)
	})
}

// TestHeldHeartbeatsEndTogether: those that began shortly one after the other are answered at one moment, none too late.
func TestHeldHeartbeatsEndTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yardMaster) {
		ends := make(chan time.Time, 2)
		for _, label := range []string{"a", "b"} {
			a := y.join(label)
			time.Sleep(20 * time.Millisecond)
			go func() {
				began := time.Now()
				y.beat(a.ID, service.Heartbeat{Wait: 10 * time.Second})
				if held := time.Since(began); held > 10*time.Second || held < 9900*time.Millisecond {
					t.Errorf("held for %v, want 10 s, at most a hundredth less", held)
				}
				ends <- time.Now()
			}()
		}
		if one, other := <-ends, <-ends; !one.Equal(other) {
			t.Errorf("they end %v apart", other.Sub(one))
		}
	})
}

// TestHeldHeartbeat: what a heartbeat that is being held is answered, and when.
func TestHeldHeartbeat(t *testing.T) {
	const held = agentTimeout / 3
	remove := func(y *yardMaster, id string) {
		if err := y.RemoveAgent(context.Background(), id); err != nil {
			y.t.Fatal(err)
		}
	}
	removeProject := func(y *yardMaster, _ string) {
		if _, err := y.RemoveProject(context.Background(), "alpha"); err != nil {
			y.t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name         string
		before, then func(y *yardMaster, id string) // before the call; five seconds after it
		assigned     string
		wait         time.Duration
		after        time.Duration // when the answer came
		project, url string
		code         yard.Code
	}{
		{name: "no wait", assigned: "", wait: 0, after: 0},
		{name: "nothing changes", wait: 10 * time.Second, after: 10 * time.Second},
		{name: "never longer than a third of the timeout", wait: time.Hour, after: held},
		{
			name: "already elsewhere", before: func(y *yardMaster, id string) { y.assign(id, "alpha") },
			wait: held, after: 0, project: "alpha", url: "http://alpha",
		},
		{
			name: "unassigned meanwhile", assigned: "alpha", wait: held, after: 0,
		},
		{
			name: "assigned", then: func(y *yardMaster, id string) { y.assign(id, "alpha") },
			wait: held, after: 5 * time.Second, project: "alpha", url: "http://alpha",
		},
		{
			name: "where it is, held", before: func(y *yardMaster, id string) { y.assign(id, "alpha") },
			assigned: "alpha", wait: held, after: held, project: "alpha", url: "http://alpha",
		},
		{
			name: "reassigned", before: func(y *yardMaster, id string) { y.assign(id, "alpha") },
			then:     func(y *yardMaster, id string) { y.assign(id, "beta") },
			assigned: "alpha", wait: held, after: 5 * time.Second, project: "beta", url: "http://beta",
		},
		{
			name: "the project's address changes", before: func(y *yardMaster, id string) { y.assign(id, "alpha") },
			then:     func(y *yardMaster, id string) { y.project("alpha", "http://moved") },
			assigned: "alpha", wait: held, after: 5 * time.Second, project: "alpha", url: "http://moved",
		},
		{
			name: "the address changed between two heartbeats",
			before: func(y *yardMaster, id string) {
				y.assign(id, "alpha")
				y.beat(id, service.Heartbeat{})
				y.project("alpha", "http://moved")
			},
			assigned: "alpha", wait: held, after: 0, project: "alpha", url: "http://moved",
		},
		{
			name: "another project's address changes", before: func(y *yardMaster, id string) { y.assign(id, "alpha") },
			then:     func(y *yardMaster, id string) { y.project("beta", "http://moved") },
			assigned: "alpha", wait: held, after: held, project: "alpha", url: "http://alpha",
		},
		{
			name: "the project is removed", before: func(y *yardMaster, id string) { y.assign(id, "alpha") },
			then: removeProject, assigned: "alpha", wait: held, after: 5 * time.Second,
		},
		{name: "the agent is removed", then: remove, wait: held, after: 5 * time.Second, code: yard.Unauthorized},
		{name: "another agent is assigned", then: func(y *yardMaster, id string) {
			y.assign(y.join("other").ID, "alpha")
		}, wait: held, after: held},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, y *yardMaster) {
				id := y.join("builder").ID
				if c.before != nil {
					c.before(y, id)
				}
				began := time.Now()
				if c.then != nil {
					time.AfterFunc(5*time.Second, func() { c.then(y, id) })
				}
				a, err := y.Heartbeat(t.Context(), id, service.Heartbeat{Assigned: c.assigned, Wait: c.wait})
				if yard.CodeOf(err) != c.code {
					t.Fatalf("err is %v, want %q", err, c.code)
				}
				if after := time.Since(began); after != c.after {
					t.Errorf("answered after %v, want %v", after, c.after)
				}
				var project, url string
				if a.AssignedProject != nil {
					project, url = *a.AssignedProject, *a.ProjectURL
				}
				if project != c.project || url != c.url {
					t.Errorf("at %q %q, want %q %q", project, url, c.project, c.url)
				}
			})
		})
	}
}

func TestHeartbeatEndsWithItsCaller(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yardMaster) {
		id := y.join("builder").ID
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if a, err := y.Heartbeat(ctx, id, service.Heartbeat{Wait: time.Minute}); err != nil || a.ID != id {
			t.Errorf("answer is %+v, %v; want the agent as it is", a, err)
		}
	})
}

func TestHeartbeatsAreWrittenBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yardMaster) {
		stop := y.run()
		a, quiet, waiting := y.join("beating"), y.join("quiet"), y.join("waiting")
		y.assign(a.ID, "alpha")
		time.Sleep(agentTimeout - 10*time.Second)
		detail := strings.Repeat("x", 5000) + "the end"
		running := yard.AgentRunning
		y.beat(a.ID, service.Heartbeat{State: &running, Detail: &detail})
		stored := func() yard.AgentRecord {
			records, err := y.store.AgentRecords(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return records[slices.IndexFunc(records, func(r yard.AgentRecord) bool { return r.ID == a.ID })]
		}
		if r := stored(); r.State != yard.AgentIdle {
			t.Errorf("stored at once: %+v", r)
		}
		time.Sleep(1100 * time.Millisecond)
		if r := stored(); r.State != running || !strings.HasSuffix(r.Detail, "the end") || len(r.Detail) > 4096 || r.LastSeenMS <= r.JoinedAtMS {
			t.Errorf("stored after a second: state %s, %d bytes of detail, seen %d", r.State, len(r.Detail), r.LastSeenMS-r.JoinedAtMS)
		}
		first := y.Service
		go first.Heartbeat(context.Background(), waiting.ID, service.Heartbeat{Wait: time.Minute})
		time.Sleep(5 * time.Second)
		stop()
		y.restart()
		time.Sleep(10 * time.Second)
		y.wantAlive("beating", "waiting") // quiet was silent for too long; an open heartbeat counted until the end
		y.wantPresence(quiet.ID, yard.AgentLost)
		if back := y.beat(a.ID, service.Heartbeat{}); back.State != running || *back.AssignedProject != "alpha" {
			t.Errorf("after the restart: %+v", back)
		}
		time.Sleep(time.Minute)
	})
}

func TestHeartbeatsThatCouldNotBeSavedAreSavedLater(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yardMaster) {
		a := y.join("builder")
		time.Sleep(time.Second)
		y.beat(a.ID, state(yard.AgentRunning))
		y.store.broken = true
		if err := y.RunAgents(t.Context()); err == nil {
			t.Fatal("a failing store went unnoticed")
		}
		y.store.broken = false
		stop := y.run()
		time.Sleep(1100 * time.Millisecond)
		stop()
		y.restart()
		if got := y.AllAgents()[0].State; got != yard.AgentRunning {
			t.Errorf("state after the restart is %s, want running", got)
		}
	})
}

func TestAgentsAreOrderedByLabelThenID(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yardMaster) {
		for _, label := range []string{"b", "ä", "B", "a", "b"} {
			y.join(label)
		}
		y.wantAlive("B", "a", "b", "b", "ä")
		if all := y.Agents(); all[2].ID > all[3].ID {
			t.Error("agents of one label are not ordered by id")
		}
	})
}

func TestJoinTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yardMaster) {
		ctx := t.Context()
		token := func() (yard.Secret, yard.JoinToken) {
			secret, tok, err := y.CreateToken(ctx)
			if err != nil || !strings.HasPrefix(secret.Reveal(), "swj_") || len(secret.Reveal()) < len("swj_")+32 {
				t.Fatalf("token %q, %v", secret.Reveal(), err)
			}
			return secret, tok
		}
		join := func(secret yard.Secret) error {
			_, _, err := y.JoinAgent(ctx, secret, nil, "")
			return err
		}
		used, _ := token()
		if err := join(used); err != nil {
			t.Fatal(err)
		}
		revoked, revokedToken := token()
		if err := y.RevokeToken(ctx, revokedToken.Hash); err != nil {
			t.Fatal(err)
		}
		expired, _ := token()
		time.Sleep(time.Hour)
		fresh, freshToken := token()
		texts := map[string]bool{}
		for name, secret := range map[string]yard.Secret{"used": used, "revoked": revoked, "expired": expired, "unknown": "swj_x", "empty": ""} {
			err := join(secret)
			if yard.CodeOf(err) != yard.Unauthorized {
				t.Errorf("%s token: %v, want unauthorized", name, err)
			}
			texts[yard.MessageOf(err)] = true
		}
		if len(texts) != 1 {
			t.Errorf("the refusals differ: %v", texts)
		}
		for _, label := range []string{"", strings.Repeat("ä", 101), "a\nb"} {
			if _, _, err := y.JoinAgent(ctx, fresh, &label, ""); yard.CodeOf(err) != yard.Invalid {
				t.Errorf("label %q: %v, want invalid", label, err)
			}
		}
		if unused, err := y.UnusedTokens(ctx); err != nil || len(unused) != 1 || unused[0] != freshToken {
			t.Errorf("unused are %+v, %v; a refused label must not spend the token", unused, err)
		}
		a, secret, err := y.JoinAgent(ctx, fresh, nil, "")
		if err != nil || a.Label != a.ID || a.State != yard.AgentIdle || a.AssignedProject != nil {
			t.Errorf("joined as %+v, %v", a, err)
		}
		if tok, err := y.Token(ctx, freshToken.Hash); err != nil || tok.UsedBy != a.ID {
			t.Errorf("the token is %+v, %v", tok, err)
		}
		other := y.join("other")
		for _, c := range []struct {
			id     string
			secret yard.Secret
			want   yard.Code
		}{{a.ID, secret, ""}, {other.ID, secret, yard.Unauthorized}, {a.ID, fresh, yard.Unauthorized}, {"nobody", secret, yard.Unauthorized}, {"nobody", "", yard.Unauthorized}, {a.ID, "", yard.Unauthorized}} {
			if err := y.CheckAgentSecret(c.id, c.secret); yard.CodeOf(err) != c.want {
				t.Errorf("secret %.8s for %s: %v, want %q", c.secret.Reveal(), c.id, err, c.want)
			}
		}
	})
}

func TestOutlivedTokensAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yardMaster) {
		_, tok, err := y.CreateToken(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(7*24*time.Hour + 55*time.Minute)
		stop := y.run()
		defer stop()
		time.Sleep(3 * time.Minute)
		if _, err := y.Token(t.Context(), tok.Hash); err != nil {
			t.Errorf("forgotten too early: %v", err)
		}
		time.Sleep(10 * time.Minute)
		if _, err := y.Token(t.Context(), tok.Hash); yard.CodeOf(err) != yard.NotFound {
			t.Errorf("not forgotten: %v", err)
		}
	})
}

// TestAssigningWhileProjectsVanish: memory and store agree, and no agent is left at a project that is gone.
func TestAssigningWhileProjectsVanish(t *testing.T) {
	y := openYard(t, t.TempDir())
	defer y.store.Close()
	ctx := t.Context()
	agents := []yard.Agent{y.join("a"), y.join("b"), y.join("c")}
	var wg sync.WaitGroup
	for i, a := range agents {
		wg.Go(func() {
			for n := range 50 {
				name := fmt.Sprint("p", (n+i)%3)
				_, _ = y.AssignAgent(ctx, a.ID, &name) // the project may be gone
			}
		})
	}
	wg.Go(func() {
		for n := range 50 {
			name := fmt.Sprint("p", n%3)
			y.project(name, "http://p")
			if n%2 == 0 {
				_, _ = y.RemoveProject(ctx, name)
			}
		}
	})
	wg.Wait()
	shown := map[string]string{}
	for _, a := range y.AllAgents() {
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
		if _, ok := y.Registry().Find(r.AssignedProject); r.AssignedProject != "" && !ok {
			t.Errorf("%s is at %q, which is gone", r.Label, r.AssignedProject)
		}
	}
}
