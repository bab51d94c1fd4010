package bot_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/bottest"
	"switchyard/internal/domain"
)

// executioner kills a process before or after one of its steps, which are calls to the chat server and writes to the store. From
// then on the dead process reaches neither.
type executioner struct {
	store bot.State
	at    int  // the step, counted from 1; 0 for none
	after bool // the step is done, but the process does not get the result

	mu    sync.Mutex
	steps int
	dead  chan struct{} // closed at death
	alive bool          // started again
}

var errDead = errors.New("this process is dead")

// step does one step of the process.
func (e *executioner) step(do func()) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.dead:
		if !e.alive {
			return errDead
		}
		do()
		return nil
	default:
	}
	e.steps++
	if e.steps != e.at {
		do()
		return nil
	}
	if e.after {
		do()
	}
	close(e.dead)
	return errDead
}

func (e *executioner) State(ctx context.Context, key string) (string, error) {
	return e.store.State(ctx, key)
}

func (e *executioner) SetState(ctx context.Context, key, value string) (err error) {
	died := e.step(func() { err = e.store.SetState(ctx, key, value) })
	return errors.Join(died, err)
}

func (e *executioner) RecordBotRequest(ctx context.Context, id string) (first bool, err error) {
	died := e.step(func() { first, err = e.store.RecordBotRequest(ctx, id) })
	return first, errors.Join(died, err)
}

// through makes each call to a chat server a step. Long polls are not steps: nothing depends on them.
func (e *executioner) through(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/sync") {
			h.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		if e.step(func() { h.ServeHTTP(answer, r) }) != nil {
			panic(http.ErrAbortHandler) // the connection is cut
		}
		for key, values := range answer.Header() {
			w.Header()[key] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// within waits for a condition like eventually, in goroutines of a test.
func within(t *testing.T, check func() string) bool {
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		complaint := check()
		if complaint == "" {
			return true
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Error(complaint)
			return false
		}
	}
}

// killed runs p, which dies at e's step and is started again. happen is called once the bot's position in the stream is stored,
// and adds three events, all of which must be posted. killed returns when done has no complaint.
func (p *process) killed(e *executioner, ready func() bool, happen func(), done func() string) bool {
	p.start()
	go func() {
		select {
		case <-e.dead:
		case <-p.t.Context().Done():
			return
		}
		p.kill()
		e.mu.Lock()
		e.alive = true
		e.mu.Unlock()
		p.start()
	}()
	began := within(p.t, func() string {
		if stored, err := e.store.State(p.t.Context(), "bot.outbox"); err == nil && stored != "" && ready() {
			return ""
		}
		return fmt.Sprintf("step %d: the bot is not ready", e.at)
	})
	if !began {
		return false
	}
	for n := range 3 {
		p.gateway.move("alpha", n)
	}
	happen()
	return within(p.t, done)
}

// everyStep runs life undisturbed to count its steps, and then once for each step, killed there.
func everyStep(t *testing.T, life func(t *testing.T, e *executioner)) {
	t.Helper()
	steps := 0
	synctest.Test(t, func(t *testing.T) {
		count := &executioner{dead: make(chan struct{})}
		life(t, count)
		count.mu.Lock()
		defer count.mu.Unlock()
		steps = count.steps
	})
	for at := 1; at <= steps; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("at step %d, after it: %v", at, after), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { life(t, &executioner{at: at, after: after, dead: make(chan struct{})}) })
			})
		}
	}
}

func TestMatrixKilledAtAnyStepSkipsAndRepeatsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes over a second of processor time")
	}
	for name, forgetful := range map[string]bool{"a server that keeps transaction ids": false, "a server that forgets them": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killMatrixAtEveryStep(t, forgetful)
		})
	}
}

func killMatrixAtEveryStep(t *testing.T, forgetful bool) {
	everyStep(t, func(t *testing.T, e *executioner) {
		h := bottest.NewMemoryHomeserver(t)
		h.Forgetful = forgetful
		h.HTTP.Config.Handler = e.through(h)
		p := newProcess(t, bot.Options{Operators: []string{bottest.Operator}})
		e.store = p.db
		p.options.State = e
		p.gateway.configure(h.Config(), nil)
		h.Create("!ops", "Operations", bottest.Operator, false)
		h.Invite("!ops", bottest.Operator)
		var bodies []string
		ready := func() bool { return h.IsMember("!ops") && len(p.rooms()) == 1 }
		happen := func() { h.Say("!ops", bottest.Operator, "switch alpha") }
		p.killed(e, ready, happen, func() string {
			bodies = nil
			for _, post := range h.Posts("!ops") {
				bodies = append(bodies, post.Body)
			}
			if len(bodies) >= 4 && p.idle(e) {
				return ""
			}
			return fmt.Sprintf("step %d %v: posts %q", e.at, e.after, bodies)
		})
		slices.SortStableFunc(bodies, func(a, b string) int { // the reply may be anywhere among the events
			return strings.Compare(a[:1], b[:1])
		})
		want := []string{
			"The active project is now alpha.",
			"alpha · s0 · Story 0 · Current → QA", "alpha · s1 · Story 1 · Current → QA", "alpha · s2 · Story 2 · Current → QA",
		}
		if !slices.Equal(bodies, want) {
			t.Errorf("killed at step %d (after: %v): posts %q", e.at, e.after, bodies)
		}
	})
}

func TestTeamKilledAtAnyStepRepeatsAtMostOneMessage(t *testing.T) {
	t.Parallel()
	everyStep(t, func(t *testing.T, e *executioner) {
		s := bottest.NewMemoryWorkspace(t)
		s.Patient = true // the new process does not know when the dead one posted
		s.Channels["C2"] = "dev"
		s.HTTP.Config.Handler = e.through(s)
		p := newProcess(t, bot.Options{TeamAPIURL: s.HTTP.URL + "/api"})
		e.store = p.db
		p.options.State = e
		p.gateway.configure(s.Config(), nil)
		var texts []string
		p.killed(e, func() bool { return true }, func() {}, func() string {
			idle := p.idle(e) // before the posts are read, of which none follows then
			texts = nil
			s.Do(func() {
				for _, post := range s.Posts {
					texts = append(texts, post.Channel+" "+post.Text)
				}
			})
			if len(texts) >= 6 && idle {
				return ""
			}
			return fmt.Sprintf("step %d %v: posts %q", e.at, e.after, texts)
		})
		var want []string
		for n := range 3 {
			for _, channel := range []string{"C1", "C2"} {
				want = append(want, fmt.Sprintf("%s *alpha* · `s%d` · Story %d · Current → QA", channel, n, n))
			}
		}
		if once := slices.Compact(slices.Clone(texts)); !slices.Equal(once, want) || len(texts) > len(want)+1 {
			t.Errorf("killed at step %d (after: %v): posts %q", e.at, e.after, texts)
		}
	})
}

// rooms returns the running bot's rooms, none while there is no process.
func (p *process) rooms() []string { return p.current().Status().Rooms }

// idle reports whether the bot has nothing more to post.
func (p *process) idle(e *executioner) bool {
	stored, err := e.store.State(p.t.Context(), "bot.outbox")
	return err == nil && stored == fmt.Sprintf(`{"cursor":%d}`, p.gateway.LastID()) && p.current().Status().State == domain.BotConnected
}
