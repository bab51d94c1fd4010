package service_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
)

// TestHeldHeartbeatsEndTogether: heartbeats that began shortly after one another are answered together, none too late.
func TestHeldHeartbeatsEndTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, g *testGateway) {
		ends := make(chan time.Time, 2)
		for _, label := range []string{"a", "b"} {
			a := g.join(label)
			time.Sleep(20 * time.Millisecond)
			go func() {
				began := time.Now()
				g.beat(a.ID, service.Heartbeat{Wait: 10 * time.Second})
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

// TestHeldHeartbeat checks the response to a held heartbeat and its time.
func TestHeldHeartbeat(t *testing.T) {
	const held = agentTimeout / 3
	remove := func(g *testGateway, id string) {
		if err := g.Agents.Remove(context.Background(), id); err != nil {
			g.t.Fatal(err)
		}
	}
	removeProject := func(g *testGateway, _ string) {
		if _, err := g.Projects.Remove(context.Background(), "alpha"); err != nil {
			g.t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name         string
		before, then func(g *testGateway, id string) // before the call; five seconds after it
		assignedTo   string
		wait         time.Duration
		after        time.Duration // when the answer came
		project, url string
		code         domain.Code
	}{
		{name: "no wait", assignedTo: "", wait: 0, after: 0},
		{name: "nothing changes", wait: 10 * time.Second, after: 10 * time.Second},
		{name: "never longer than a third of the timeout", wait: time.Hour, after: held},
		{
			name: "already elsewhere", before: func(g *testGateway, id string) { g.assign(id, "alpha") },
			wait: held, after: 0, project: "alpha", url: "http://alpha",
		},
		{
			name: "unassigned meanwhile", assignedTo: "alpha", wait: held, after: 0,
		},
		{
			name: "assigned", then: func(g *testGateway, id string) { g.assign(id, "alpha") },
			wait: held, after: 5 * time.Second, project: "alpha", url: "http://alpha",
		},
		{
			name: "where it is, held", before: func(g *testGateway, id string) { g.assign(id, "alpha") },
			assignedTo: "alpha", wait: held, after: held, project: "alpha", url: "http://alpha",
		},
		{
			name: "reassigned", before: func(g *testGateway, id string) { g.assign(id, "alpha") },
			then:       func(g *testGateway, id string) { g.assign(id, "beta") },
			assignedTo: "alpha", wait: held, after: 5 * time.Second, project: "beta", url: "http://beta",
		},
		{
			name: "the project's address changes", before: func(g *testGateway, id string) { g.assign(id, "alpha") },
			then:       func(g *testGateway, id string) { g.project("alpha", "http://moved") },
			assignedTo: "alpha", wait: held, after: 5 * time.Second, project: "alpha", url: "http://moved",
		},
		{
			name: "the address changed between two heartbeats",
			before: func(g *testGateway, id string) {
				g.assign(id, "alpha")
				g.beat(id, service.Heartbeat{})
				g.project("alpha", "http://moved")
			},
			assignedTo: "alpha", wait: held, after: 0, project: "alpha", url: "http://moved",
		},
		{
			name: "another project's address changes", before: func(g *testGateway, id string) { g.assign(id, "alpha") },
			then:       func(g *testGateway, id string) { g.project("beta", "http://moved") },
			assignedTo: "alpha", wait: held, after: held, project: "alpha", url: "http://alpha",
		},
		{
			name: "the project is removed", before: func(g *testGateway, id string) { g.assign(id, "alpha") },
			then: removeProject, assignedTo: "alpha", wait: held, after: 5 * time.Second,
		},
		{name: "the agent is removed", then: remove, wait: held, after: 5 * time.Second, code: domain.Unauthorized},
		{name: "another agent is assigned", then: func(g *testGateway, id string) {
			g.assign(g.join("other").ID, "alpha")
		}, wait: held, after: held},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *testGateway) {
				id := g.join("builder").ID
				if c.before != nil {
					c.before(g, id)
				}
				began := time.Now()
				if c.then != nil {
					time.AfterFunc(5*time.Second, func() { c.then(g, id) })
				}
				a, err := g.Agents.Heartbeat(t.Context(), id, service.Heartbeat{Assigned: c.assignedTo, Wait: c.wait})
				if domain.CodeOf(err) != c.code {
					t.Fatalf("err is %v, want %q", err, c.code)
				}
				if after := time.Since(began); after != c.after {
					t.Errorf("answered after %v, want %v", after, c.after)
				}
				var project, url string
				if a.Project != "" {
					project, url = a.Project, a.ProjectURL
				}
				if project != c.project || url != c.url {
					t.Errorf("at %q %q, want %q %q", project, url, c.project, c.url)
				}
			})
		})
	}
}

func TestHeartbeatEndsWithItsCaller(t *testing.T) {
	inBubble(t, func(t *testing.T, g *testGateway) {
		id := g.join("builder").ID
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if a, err := g.Agents.Heartbeat(ctx, id, service.Heartbeat{Wait: time.Minute}); err != nil || a.ID != id {
			t.Errorf("answer is %+v, %v; want the agent as it is", a, err)
		}
	})
}

func TestHeartbeatsAreWrittenBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, g *testGateway) {
		stop := g.run()
		a, quiet, waiting := g.join("beating"), g.join("quiet"), g.join("waiting")
		g.assign(a.ID, "alpha")
		time.Sleep(agentTimeout - 10*time.Second + 100*time.Millisecond)
		detail := strings.Repeat("x", 5000) + "the end"
		running := domain.AgentRunning
		g.beat(a.ID, service.Heartbeat{State: &running, Detail: &detail})
		stored := func() domain.AgentRecord {
			records, err := g.store.AgentRecords(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return records[slices.IndexFunc(records, func(r domain.AgentRecord) bool { return r.ID == a.ID })]
		}
		if r := stored(); r.State != domain.AgentIdle {
			t.Errorf("stored at once: %+v", r)
		}
		time.Sleep(1100 * time.Millisecond)
		if r := stored(); r.State != running || !strings.HasSuffix(r.Detail, "the end") || len(r.Detail) > 4096 || !r.LastSeen.After(r.JoinedAt) {
			t.Errorf("stored after a second: state %s, %d bytes of detail, seen %v", r.State, len(r.Detail), r.LastSeen.Sub(r.JoinedAt))
		}
		first := g.Service
		go first.Agents.Heartbeat(context.Background(), waiting.ID, service.Heartbeat{Wait: time.Minute})
		time.Sleep(5 * time.Second)
		stop()
		g.restart()
		time.Sleep(10 * time.Second)
		g.wantAlive("beating", "waiting") // quiet was silent for too long; an open heartbeat counted until the end
		g.wantPresence(quiet.ID, domain.AgentLost)
		if back := g.beat(a.ID, service.Heartbeat{}); back.State != running || back.Project != "alpha" {
			t.Errorf("after the restart: %+v", back)
		}
		time.Sleep(time.Minute)
	})
}

func TestHeartbeatsThatCouldNotBeSavedAreSavedLater(t *testing.T) {
	inBubble(t, func(t *testing.T, g *testGateway) {
		a := g.join("builder")
		time.Sleep(time.Second)
		g.beat(a.ID, state(domain.AgentRunning))
		g.store.broken = true
		if err := g.Agents.Run(t.Context()); err == nil {
			t.Fatal("a failing store went unnoticed")
		}
		g.store.broken = false
		stop := g.run()
		time.Sleep(1100 * time.Millisecond)
		stop()
		g.restart()
		if got := g.Agents.All()[0].State; got != domain.AgentRunning {
			t.Errorf("state after the restart is %s, want running", got)
		}
	})
}
