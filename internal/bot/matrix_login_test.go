package bot_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/bottest"
	"switchyard/internal/domain"
)

const refusedLogin = "The homeserver refuses this user name or password"

// A password change logs the bot out whatever it is doing.
func TestMatrixSaysThatTheLoginIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		h.ChangePassword("canary-other")
		p.gateway.move("alpha", 1)
		p.waitState(domain.BotFailed, refusedLogin)
		eventually(t, func() string {
			if strings.Contains(p.logs.String(), "again_in=5m0s") {
				return ""
			}
			return "not tried again every five minutes: " + p.logs.String()
		})
		h.ChangePassword(bottest.Password)
		p.save(h.Config())
		if got := roomPosts(t, h, "!ops", 1); !strings.Contains(got[0].Body, "Story 1") {
			t.Errorf("posts %+v", got)
		}
	})
}

func TestMatrixLosesNothingWhenTheLoginIsRefusedDuringACall(t *testing.T) {
	for _, test := range []struct {
		name, path string
		trigger    func(p *process, h *bottest.Homeserver)
		want       func(h *bottest.Homeserver) bool // once the password is right again
	}{
		{
			"send", "/send/", func(p *process, _ *bottest.Homeserver) { p.gateway.move("alpha", 1) },
			func(h *bottest.Homeserver) bool { return len(h.Posts("!ops")) == 1 && len(h.Posts("!two")) == 1 },
		},
		{
			"invitation", "/join/", func(_ *process, h *bottest.Homeserver) {
				h.Create("!new", "New", bottest.Operator, false)
				h.Invite("!new", bottest.Operator)
			},
			func(h *bottest.Homeserver) bool { return h.IsMember("!new") },
		},
		{
			"leave", "/leave", func(_ *process, h *bottest.Homeserver) {
				h.Event("!two", bottest.Operator, "m.room.encryption", map[string]any{"algorithm": "m.megolm.v1.aes-sha2"})
			},
			func(h *bottest.Homeserver) bool { return !h.IsMember("!two") },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, h := joined(t)
				h.Create("!two", "Two", bottest.Operator, false)
				h.Invite("!two", bottest.Operator)
				p.waitRooms(2)
				h.Do(func() {
					h.Before = func(_ http.ResponseWriter, r *http.Request) bool {
						if strings.Contains(r.URL.Path, test.path) {
							h.ChangePassword("canary-other")
						}
						return false
					}
				})
				test.trigger(p, h)
				p.waitState(domain.BotFailed, refusedLogin)
				h.Do(func() { h.Before = nil })
				h.ChangePassword(bottest.Password)
				p.save(h.Config())
				eventually(t, func() string {
					if test.want(h) {
						return ""
					}
					return fmt.Sprintf("!ops %+v, !two %+v", h.Posts("!ops"), h.Posts("!two"))
				})
			})
		})
	}
}

// slowState holds each write until the test lets it proceed.
type slowState struct {
	memory
	writing chan struct{} // receives when a write begins
	proceed chan struct{} // lets it proceed
}

func (s *slowState) SetState(ctx context.Context, key, value string) error {
	if strings.HasPrefix(key, "bot.matrix") {
		s.writing <- struct{}{}
		<-s.proceed
	}
	return s.memory.SetState(ctx, key, value)
}

func TestStatusDoesNotWaitForTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := bottest.NewMemoryHomeserver(t)
		state := &slowState{writing: make(chan struct{}), proceed: make(chan struct{})}
		p := newProcess(t, bot.Options{State: state})
		p.gateway.configure(h.Config(), nil)
		p.start()
		<-state.writing
		status := make(chan domain.BotStatus)
		go func() { status <- p.supervisor.Status() }()
		select {
		case <-status:
		case <-time.After(time.Minute):
			t.Error("the status waits for a write to the store")
		}
		go func() { // from now on every write proceeds at once
			for range state.writing {
			}
		}()
		close(state.proceed)
		p.waitState(domain.BotConnected, "")
		p.kill()
		close(state.writing)
	})
}
