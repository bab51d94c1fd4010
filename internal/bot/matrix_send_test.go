package bot_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"switchyard/internal/bot"
	"switchyard/internal/bottest"
	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

func TestMatrixEndsASendUnderWayBeforeItStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sending, stopping := make(chan struct{}), make(chan struct{})
		sends := sync.OnceFunc(func() { close(sending) })
		var polls atomic.Int64 // under way
		p, h := joinedThrough(t, func(inner http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/send/") {
					sends()
					<-stopping // the bot was told to stop, and has aborted its long poll
					if r.Context().Err() != nil {
						t.Error("the send was cut off")
					}
				}
				if strings.HasSuffix(r.URL.Path, "/sync") {
					polls.Add(1)
					defer polls.Add(-1)
				}
				inner.ServeHTTP(w, r)
			})
		})
		h.Do(func() { h.Forgetful = true })
		p.gateway.move("alpha", 1)
		<-sending
		killed := make(chan struct{})
		go func() { defer close(killed); p.kill() }()
		waittest.Until(t, "the long-poll is cut off", func() bool { return polls.Load() == 0 })
		close(stopping)
		<-killed
		if stored, err := p.db.State(t.Context(), "bot.outbox"); err != nil || stored != `{"cursor":1}` {
			t.Errorf("stored %s, %v; the message is posted", stored, err)
		}
		if got := h.Posts("!ops"); len(got) != 1 {
			t.Errorf("posts %+v", got)
		}
	})
}

// Dendrite continues an aborted request, and does not remember its transaction id.
func TestMatrixFindsWhatACutRequestPosted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var once sync.Once
		p, h := joinedThrough(t, func(inner http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inner.ServeHTTP(w, r)
				if strings.Contains(r.URL.Path, "/send/") {
					once.Do(func() { panic(http.ErrAbortHandler) })
				}
			})
		})
		h.Do(func() { h.Forgetful = true })
		for range 150 { // other users post, too
			h.Say("!ops", bottest.Stranger, "good morning")
		}
		h.Event("!ops", bottest.Stranger, "m.room.message", map[string]any{"msgtype": "m.text", "body": "x", "switchyard.key": 7})
		p.gateway.move("alpha", 1)
		p.waitState(domain.BotFailed, "")
		p.waitState(domain.BotConnected, "")
		p.gateway.move("alpha", 2)
		got := roomPosts(t, h, "!ops", 2)
		if len(got) != 2 || !strings.Contains(got[0].Body, "Story 1") || !strings.Contains(got[1].Body, "Story 2") {
			t.Errorf("posts %+v", got)
		}
	})
}

func TestMatrixObeysACommandOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		h.Do(func() { h.Forgetful = true })
		account := "bot.matrix " + h.HTTP.URL + " yard"
		position, err := p.db.State(t.Context(), account)
		if err != nil {
			t.Fatal(err)
		}
		h.Say("!ops", bottest.Operator, "switch alpha")
		roomPosts(t, h, "!ops", 1)
		p.kill()
		if err := p.db.SetState(t.Context(), account, position); err != nil { // as after a crash before the position was stored
			t.Fatal(err)
		}
		if err := p.gateway.Switch(t.Context(), "beta two"); err != nil {
			t.Fatal(err)
		}
		p.start()
		p.waitState(domain.BotConnected, "")
		h.Say("!ops", bottest.Operator, "help")
		if got := roomPosts(t, h, "!ops", 2); len(got) != 2 || p.gateway.Registry().Active != "beta two" {
			t.Errorf("active %q, posts %+v", p.gateway.Registry().Active, got)
		}
	})
}

// TestMatrixReadsWhatASyncLeftOut: of more messages than a sync has, each command is obeyed once, and what is too old is named.
func TestMatrixReadsWhatASyncLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		talk := func(n int) {
			for range n {
				h.Say("!ops", bottest.Stranger, "so")
			}
		}
		h.Do(func() { // within one sync
			h.SayWithin("!ops", bottest.Operator, "switch alpha")
			for range 60 {
				h.SayWithin("!ops", bottest.Stranger, "so")
			}
		})
		if got := roomPosts(t, h, "!ops", 1); !strings.Contains(got[0].Body, "now alpha") {
			t.Errorf("posts %+v", got)
		}
		p.kill()
		h.Say("!ops", bottest.Operator, "switch beta two")
		talk(60)
		h.Say("!ops", bottest.Operator, "help")
		p.start()
		if got := roomPosts(t, h, "!ops", 3); len(got) != 3 || !strings.Contains(got[1].Body, "now beta two") {
			t.Errorf("posts %+v", got)
		}
		p.kill()
		h.Say("!ops", bottest.Operator, "switch alpha")
		talk(1100)
		h.Say("!ops", bottest.Operator, "help")
		p.start()
		if got := roomPosts(t, h, "!ops", 4); len(got) != 4 || p.gateway.Registry().Active != "beta two" || !strings.Contains(p.logs.String(), "older messages were not read") {
			t.Errorf("active %q, posts %+v, log\n%s", p.gateway.Registry().Active, got, p.logs)
		}
	})
}

// In a new or restored database the ids of events begin again.
func TestMatrixPostsEverythingFromAnotherDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		move := func(p *process) {
			for n := range 3 {
				p.gateway.move("alpha", n)
			}
		}
		move(p)
		roomPosts(t, h, "!ops", 3)
		p.kill()
		account := "bot.matrix " + h.HTTP.URL + " yard"
		session, err := p.db.State(t.Context(), account)
		if err != nil {
			t.Fatal(err)
		}
		again := newProcess(t, bot.Options{})
		again.gateway.configure(h.Config(), nil)
		if err := again.db.SetState(t.Context(), account, session); err != nil { // the same device, for which the homeserver keeps keys
			t.Fatal(err)
		}
		again.start()
		again.waitState(domain.BotConnected, "")
		move(again)
		roomPosts(t, h, "!ops", 6)
	})
}
