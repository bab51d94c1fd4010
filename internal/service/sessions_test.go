package service_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
	"switchyard/internal/waittest"
)

// countedSessions counts how often sessions are written.
type countedSessions struct {
	*sqlite.DB
	writes atomic.Int64
}

func (c *countedSessions) SaveAgentSessions(ctx context.Context, now, gone []domain.AgentSession) error {
	c.writes.Add(1)
	return c.DB.SaveAgentSessions(ctx, now, gone)
}

func heard(ctx context.Context, s *service.Service, session, event string) {
	s.Sessions.Receive(ctx, domain.HookEvent{Name: event, Session: session, Tool: "Bash", UseID: "use of " + session})
}

func stateOf(s *service.Service, session string) domain.SessionState {
	for _, one := range s.Sessions.List() {
		if one.ID == session {
			return one.State
		}
	}
	return "none"
}

// TestSessionsAreWrittenOnceASecond, however many hooks come, fall silent after ten minutes, and are forgotten two days later.
func TestSessionsAreWrittenOnceASecond(t *testing.T) {
	dir := storetest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		counted := &countedSessions{DB: db}
		s := overBoard(t, counted, &boardServer{})
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- s.Sessions.Run(ctx) }()
		for range 1000 {
			for n := range 50 {
				heard(ctx, s, fmt.Sprint(n), "PreToolUse")
			}
			time.Sleep(10 * time.Millisecond)
		}
		heard(ctx, s, "0", "SessionEnd")
		heard(ctx, s, "1", "Stop")
		if n := counted.writes.Load(); n > 10 || n < 9 {
			t.Errorf("%d writes in 10 s", n)
		}
		time.Sleep(10*time.Minute - time.Second)
		if was := stateOf(s, "2"); was != domain.SessionWorking {
			t.Errorf("before ten minutes: %s", was)
		}
		time.Sleep(time.Minute)
		for id, want := range map[string]domain.SessionState{"0": domain.SessionOver, "1": domain.SessionIdle, "2": domain.SessionSilent} {
			if is := stateOf(s, id); is != want {
				t.Errorf("%s is %s, want %s", id, is, want)
			}
		}
		if n := counted.writes.Load(); n > 12 {
			t.Errorf("%d writes", n)
		}
		time.Sleep(24 * time.Hour)
		if first, second := stateOf(s, "0"), stateOf(s, "1"); first != "none" || second != domain.SessionOver {
			t.Errorf("a day later: %s, %s", first, second)
		}
		time.Sleep(24 * time.Hour)
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if stored, err := db.AgentSessions(t.Context()); err != nil || len(stored)+len(s.Sessions.List()) > 0 {
			t.Errorf("two days later: %d are stored, %v", len(stored), err)
		}
	})
}

// TestASessionThatGoesOnWithdrawsWhatItAsked, unless somebody holds that: it was answered at its terminal.
func TestASessionThatGoesOnWithdrawsWhatItAsked(t *testing.T) {
	inTwice(t, func(w twice) {
		open := func() (n int) { synctest.Wait(); return w.Questions.Open() }
		at := w.as("mara", domain.ChannelHook)
		for _, event := range []string{"UserPromptSubmit", "PostToolUse", "Stop"} {
			heard(at, w.Service, "s", "PreToolUse")
			heard(at, w.Service, "s", domain.PermissionRequest)
			left := w.uses("mara", domain.ChannelHook, `{"command":"`+event+`"}`, "", "s")
			byMCP := w.uses("mara", domain.ChannelMCP, `{"mcp":"`+event+`"}`, "use of s", "")
			synctest.Wait()
			if is := stateOf(w.Service, "s"); is != domain.SessionWaiting {
				t.Errorf("while it is held: %s", is)
			}
			time.Sleep(5 * time.Second)
			heard(at, w.Service, "s", event)
			time.Sleep(5 * time.Second)
			if n := open(); n != 2 {
				t.Errorf("after %s: %d of 2 that are held are open", event, n)
			}
			left.leave()
			byMCP.leave()
			time.Sleep(5 * time.Second)
			if n := open(); n != 0 {
				t.Errorf("after %s: %d are open that nobody holds", event, n)
			}
			time.Sleep(5 * time.Second)
			// What is asked afterwards stays as long as any other.
			left = w.uses("mara", domain.ChannelHook, `{"again":"`+event+`"}`, "", "s")
			synctest.Wait()
			left.leave()
			time.Sleep(5 * time.Second)
			if n := open(); n != 1 || stateOf(w.Service, "s") == domain.SessionWaiting {
				t.Errorf("after %s: %d are open that it asked later; it is %s", event, n, stateOf(w.Service, "s"))
			}
			time.Sleep(3 * time.Minute)
		}
	})
}

// TestSessionsOfSeveralGateways: each knows them all, whichever hears of them, and what was heard last counts.
func TestSessionsOfSeveralGateways(t *testing.T) {
	peers := severalGateways(t, 2)
	a, b := peers[0], peers[1]
	for _, p := range peers {
		ctx, stop := context.WithCancel(t.Context())
		var loops sync.WaitGroup
		loops.Go(func() { _ = p.Sessions.Run(ctx) })
		t.Cleanup(func() { stop(); loops.Wait() })
	}
	for n, step := range []struct {
		on    *peer
		event string
		want  domain.SessionState
	}{{a, "UserPromptSubmit", domain.SessionWorking}, {b, "Stop", domain.SessionIdle}, {a, "PreToolUse", domain.SessionWorking}, {b, "SessionEnd", domain.SessionOver}} {
		heard(t.Context(), step.on.Service, "s", step.event)
		for _, p := range peers {
			waittest.Until(t, fmt.Sprintf("step %d is known", n), func() bool { return stateOf(p.Service, "s") == step.want })
		}
	}
}

// TestASessionThatWaitsAtItsTerminalIsAnAlert after two minutes, unless an open question says so.
func TestASessionThatWaitsAtItsTerminalIsAnAlert(t *testing.T) {
	inTwice(t, func(w twice) {
		at := w.as("mara", domain.ChannelHook)
		alerts := func() (texts []string) {
			for _, a := range w.Alerts.List(at).Items {
				if a.Kind == domain.AlertWaiting {
					texts = append(texts, a.Key()+" "+a.Text()+" "+a.Link())
				}
			}
			return texts
		}
		notice := domain.HookEvent{Name: "Notification", Notification: "permission_prompt", Session: "s", Host: "mara-mbp"}
		heard(at, w.Service, "s", "PreToolUse")
		asks := w.uses("mara", domain.ChannelHook, `{}`, "", "s")
		synctest.Wait()
		w.Sessions.Receive(at, notice)
		time.Sleep(5 * time.Minute)
		if found := alerts(); len(found) > 0 {
			t.Errorf("a question says so: %q", found)
		}
		asks.leave()
		time.Sleep(3 * time.Minute)
		if found := alerts(); len(found) > 0 {
			t.Errorf("its question has ended: %q", found)
		}
		w.Sessions.Receive(at, notice)
		time.Sleep(2*time.Minute - time.Second)
		if found := alerts(); len(found) > 0 {
			t.Errorf("too early: %q", found)
		}
		time.Sleep(2 * time.Second)
		if found := alerts(); len(found) != 1 || found[0] != "waiting/s mara waits for somebody: at its terminal on mara-mbp /agents" {
			t.Errorf("it waits: %q", found)
		}
		heard(at, w.Service, "s", "PostToolUse")
		if found := alerts(); len(found) > 0 {
			t.Errorf("it went on: %q", found)
		}
	})
}
