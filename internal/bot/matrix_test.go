package bot_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/bottest"
	"switchyard/internal/domain"
)

// joined returns a bot that an operator has invited to the room !ops.
func joined(t *testing.T) (*process, *bottest.Homeserver) {
	t.Helper()
	return joinedThrough(t, func(h http.Handler) http.Handler { return h })
}

// joinedThrough is joined with a proxy between the bot and the homeserver.
func joinedThrough(t *testing.T, proxy func(http.Handler) http.Handler) (*process, *bottest.Homeserver) {
	t.Helper()
	h := bottest.NewMemoryHomeserver(t)
	h.HTTP.Config.Handler = proxy(h)
	p := newProcess(t, bot.Options{Operators: []string{bottest.Operator}})
	p.gateway.configure(h.Config(), nil)
	p.start()
	p.waitState(domain.BotConnected, "in no room")
	h.Create("!ops", "Operations", bottest.Operator, false)
	h.Invite("!ops", bottest.Operator)
	eventually(t, func() string {
		if s := p.supervisor.Status(); !slices.Equal(s.Rooms, []string{"Operations"}) {
			return fmt.Sprintf("status is %+v", s)
		}
		return ""
	})
	return p, h
}

// roomPosts returns the bot's messages in a room once there are n.
func roomPosts(t *testing.T, h *bottest.Homeserver, id string, n int) []bottest.Post {
	t.Helper()
	var posts []bottest.Post
	eventually(t, func() string {
		if posts = h.Posts(id); len(posts) >= n {
			return ""
		}
		return fmt.Sprintf("%s has %d posts, want %d: %+v", id, len(posts), n, posts)
	})
	return posts
}

func TestMatrixWholeCycle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		p.gateway.happen("alpha", domain.StageTransition, `"story_id":"14_login","story_name":"<b>Log in</b>","from_stage":"2_current","to_stage":"3_qa"`)
		got := roomPosts(t, h, "!ops", 1)[0]
		if got.Key == "" {
			t.Error("the message does not carry its key")
		}
		got.Key, got.ID = "", ""
		want := bottest.Post{
			Sender: bottest.BotUser, Kind: "m.text",
			Body: "alpha · 14_login · <b>Log in</b> · Current → QA",
			HTML: "<strong>alpha</strong> · <code>14_login</code> · &lt;b&gt;Log in&lt;/b&gt; · Current → QA",
		}
		if got != want {
			t.Errorf("posted %+v\n want %+v", got, want)
		}
		h.Say("!ops", bottest.Stranger, "!status")
		if got := roomPosts(t, h, "!ops", 2)[1]; got.Kind != "m.notice" || !strings.Contains(got.Body, "■ alpha · blocked · 12_pay · Pay: waiting: <API> key") {
			t.Errorf("status: %+v", got)
		}
		if err := p.supervisor.SendTest(t.Context()); err != nil {
			t.Errorf("test: %v", err)
		}
		if got := roomPosts(t, h, "!ops", 3)[2]; !strings.Contains(got.Body, "test message") {
			t.Errorf("test: %+v", got)
		}
		told := domain.AnnouncedStory{
			Project: "alpha", Stage: "In Review",
			Item: domain.Item{StoryID: "14_login", StoryName: "<b>Log in</b>", Since: time.Now().Add(-50 * time.Hour), Blocked: "which table?"},
		}
		if err := p.supervisor.Tell(t.Context(), domain.Announcement{By: "zoe", Word: "Who can <take> it?", Stories: []domain.AnnouncedStory{told}, More: 2}); err != nil {
			t.Errorf("tell: %v", err)
		}
		wantBody := "zoe: Who can <take> it?\n■ alpha · 14_login · <b>Log in</b> · In Review for 2 days · blocked: which table?\nand 2 more"
		if got := roomPosts(t, h, "!ops", 4)[3]; got.Body != wantBody || !strings.Contains(got.HTML, "&lt;take&gt;") {
			t.Errorf("told: %q, %q", got.Body, got.HTML)
		}
		for _, canary := range []string{bottest.Password, "canary-access-token"} {
			if strings.Contains(p.logs.String(), canary) {
				t.Errorf("the log holds %s:\n%s", canary, p.logs)
			}
		}
	})
}

func TestMatrixKeepsItsDeviceAndPositionOverRestarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		p.kill()
		p.gateway.move("alpha", 1)
		h.Say("!ops", bottest.Stranger, "yard: help")
		p.start()
		got := roomPosts(t, h, "!ops", 2)
		slices.SortFunc(got, func(a, b bottest.Post) int { return strings.Compare(a.Kind, b.Kind) })
		if !strings.Contains(got[0].Body, "this list") || !strings.Contains(got[1].Body, "Story 1") {
			t.Errorf("posts %+v", got)
		}
		p.kill()
		h.Do(func() { clear(h.Devices) }) // the homeserver forgets the session
		p.gateway.move("alpha", 2)
		p.start()
		if got := roomPosts(t, h, "!ops", 3); !strings.Contains(got[2].Body, "Story 2") {
			t.Errorf("posts %+v", got)
		}
		h.Do(func() {
			if h.Logins != 2 || len(h.Devices) != 1 {
				t.Errorf("%d logins, devices %v; want 2 and the same device", h.Logins, h.Devices)
			}
			for _, device := range h.Devices {
				if device != "DEVICE1" {
					t.Errorf("device %s", device)
				}
			}
		})
	})
}

func TestMatrixLogsInAgainWhileItRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		h.Do(func() { clear(h.Devices) })
		p.gateway.move("alpha", 1)
		roomPosts(t, h, "!ops", 1)
		if s := p.supervisor.Status(); s.State != domain.BotConnected {
			t.Errorf("status %+v", s)
		}
	})
}

func TestMatrixObeysRateLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		h.Do(func() { h.Limited = 5 })
		p.gateway.move("alpha", 1)
		if got := roomPosts(t, h, "!ops", 1); len(got) != 1 {
			t.Errorf("posts %+v", got)
		}
	})
}

func TestMatrixSkipsNothingThatItsEndInterrupts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		limited := make(chan struct{}, 1)
		h.Do(func() {
			h.Before = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/send/") {
					return false
				}
				conn, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return true
				}
				defer conn.Close()
				const refusal = `{"errcode":"M_LIMIT_EXCEEDED","error":"slow down","retry_after_ms":3600000}`
				fmt.Fprintf(conn, "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(refusal), refusal)
				_, _ = io.Copy(io.Discard, conn) // the bot closes what it has read
				limited <- struct{}{}
				return true
			}
		})
		p.gateway.move("alpha", 1)
		<-limited
		p.kill()
		h.Do(func() { h.Before = nil })
		p.start()
		p.waitState(domain.BotConnected, "")
		p.gateway.move("alpha", 2)
		got := roomPosts(t, h, "!ops", 2)
		if !strings.Contains(got[0].Body, "Story 1") || !strings.Contains(got[1].Body, "Story 2") {
			t.Errorf("posts %+v", got)
		}
	})
}

// A proxy whose homeserver is down may also answer 404, which says nothing about a room.
func TestMatrixSkipsNothingForAProxy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		h.Do(func() {
			h.Before = func(w http.ResponseWriter, r *http.Request) bool {
				http.NotFound(w, r)
				return true
			}
		})
		p.gateway.move("alpha", 1)
		p.waitState(domain.BotFailed, "404")
		h.Do(func() { h.Before = nil })
		roomPosts(t, h, "!ops", 1)
	})
}

func TestMatrixJoinsForOperatorsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		h.Create("!other", "Other", bottest.Stranger, false)
		h.Invite("!other", bottest.Stranger)
		eventually(t, func() string {
			if strings.Contains(p.logs.String(), "invitation declined") {
				return ""
			}
			return "the invitation was not declined"
		})
		h.Create("!secret", "Secret", bottest.Operator, true)
		h.Invite("!secret", bottest.Operator)
		if got := roomPosts(t, h, "!secret", 1)[0]; got.Kind != "m.notice" || !strings.Contains(got.Body, "encrypted") {
			t.Errorf("notice %+v", got)
		}
		// A room may become encrypted later on.
		h.Event("!ops", bottest.Operator, "m.room.encryption", map[string]any{"algorithm": "m.megolm.v1.aes-sha2"})
		roomPosts(t, h, "!ops", 1)
		eventually(t, func() string {
			for _, room := range []string{"!other", "!secret", "!ops"} {
				if h.IsMember(room) {
					return "still a member of " + room
				}
			}
			return ""
		})
		p.waitState(domain.BotConnected, "encrypted")
	})
}

func TestMatrixIgnoresWhatIsNotForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		h.Create("!new", "", bottest.Operator, false)
		h.Say("!new", bottest.Operator, "!switch alpha") // before the bot has joined
		h.Invite("!new", bottest.Operator)
		h.Say("!new", bottest.Operator, "so")
		eventually(t, func() string {
			if h.IsMember("!new") {
				return ""
			}
			return "not joined"
		})
		h.Say("!new", bottest.Operator, "!help")
		if got := roomPosts(t, h, "!new", 1); !strings.Contains(got[0].Body, "this list") {
			t.Errorf("posts %+v", got)
		}
		h.Say("!ops", bottest.Operator, "good morning")
		h.Say("!ops", bottest.Operator, "status of the release?")
		h.Event("!ops", bottest.Operator, "m.room.message", map[string]any{"msgtype": "m.notice", "body": "!status"})
		h.Event("!ops", bottest.Operator, "m.room.message", map[string]any{
			"msgtype": "m.text", "body": "* !status", "m.relates_to": map[string]any{"rel_type": "m.replace"},
		})
		h.Event("!ops", bottest.Operator, "m.room.message", map[string]any{"msgtype": "m.text", "body": 7})
		h.Say("!ops", bottest.Operator, "The Yard: dance")
		if got := roomPosts(t, h, "!ops", 1); !strings.Contains(got[0].Body, "Unknown command dance") {
			t.Errorf("posts %+v", got)
		}
		if s := p.supervisor.Status(); s.State != domain.BotConnected {
			t.Errorf("status %+v", s)
		}
	})
}

func TestMatrixLeavesOutARoomThatRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		h.Create("!two", "", bottest.Operator, false)
		h.Invite("!two", bottest.Operator)
		eventually(t, func() string {
			if s := p.supervisor.Status(); len(s.Rooms) != 2 {
				return fmt.Sprintf("status %+v", s)
			}
			return ""
		})
		h.Expel("!ops") // without a reason
		p.gateway.move("alpha", 1)
		roomPosts(t, h, "!two", 1)
		err := p.supervisor.SendTest(t.Context())
		if domain.CodeOf(err) != domain.BadGateway || domain.MessageOf(err) != "not sent to Operations: the room refused the message" {
			t.Errorf("test: %v", err)
		}
	})
}

func TestMatrixSaysWhatToDo(t *testing.T) {
	t.Parallel()
	h := bottest.NewHomeserver(t)
	html := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(html.Close)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(502) }))
	t.Cleanup(broken.Close)
	referring := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/matrix/client" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `{"m.homeserver":{"base_url":"%s/"}}`, h.HTTP.URL)
	}))
	t.Cleanup(referring.Close)
	p := newProcess(t, bot.Options{})
	p.start()
	for _, test := range []struct {
		name   string
		config func(*domain.BotConfig)
		state  domain.BotState
		detail string
	}{
		{"nothing filled in", func(c *domain.BotConfig) {
			*c = domain.BotConfig{Transport: domain.BotMatrix, Settings: map[string]domain.Secret{"username": ""}}
		}, domain.BotOff, "fill in Homeserver URL, Bot username, Password"},
		{"wrong password", func(c *domain.BotConfig) { c.Settings["password"] = "canary-wrong" }, domain.BotFailed, "Check Bot username and Password"},
		{"no address", func(c *domain.BotConfig) { c.Settings["homeserver"] = "ftp://x" }, domain.BotFailed, "must be like https://"},
		{"unknown homeserver", func(c *domain.BotConfig) { c.Settings["homeserver"] = "http://no-such-host.invalid" }, domain.BotFailed, "no such host"},
		{"refusing homeserver", func(c *domain.BotConfig) { c.Settings["homeserver"] = "http://127.0.0.1:1" }, domain.BotFailed, "refused"},
		{"another server", func(c *domain.BotConfig) { c.Settings["homeserver"] = domain.Secret(html.URL) }, domain.BotFailed, "is not a Matrix homeserver"},
		{"broken homeserver", func(c *domain.BotConfig) { c.Settings["homeserver"] = domain.Secret(broken.URL) }, domain.BotFailed, "status 502"},
		{"referred homeserver, nobody may invite", func(c *domain.BotConfig) { c.Settings["homeserver"] = domain.Secret(referring.URL) }, domain.BotConnected, "bot.operators"},
		{"password changed to a wrong one", func(c *domain.BotConfig) {
			c.Settings["homeserver"], c.Settings["password"] = domain.Secret(referring.URL), "canary-wrong"
		}, domain.BotFailed, "Check Bot username and Password"},
		{"no password login", func(*domain.BotConfig) { h.Do(func() { h.NoProof = true }) }, domain.BotFailed, "refuses a login with a password"},
	} {
		config := h.Config()
		test.config(&config)
		p.save(config)
		p.waitState(test.state, test.detail)
		if err := p.supervisor.SendTest(t.Context()); domain.CodeOf(err) != domain.BadGateway {
			t.Errorf("%s: test = %v", test.name, err)
		}
	}
	p.gateway.configure(domain.BotConfig{}, domain.Errorf(domain.Internal, "bot.toml is not TOML: line 2"))
	if err := p.supervisor.Restart(t.Context()); err != nil {
		t.Error(err)
	}
	p.waitState(domain.BotFailed, "line 2")
	if strings.Contains(p.logs.String(), "canary") {
		t.Errorf("the log holds a secret:\n%s", p.logs)
	}
}

func TestMatrixStartsAgainWhereItsPositionIsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		p.kill()
		h.Do(func() { h.Forgets = true })
		p.start()
		eventually(t, func() string {
			if p.supervisor.Status().State == domain.BotConnected {
				h.Say("!ops", bottest.Operator, "!help")
			}
			if len(h.Posts("!ops")) > 0 {
				return ""
			}
			return fmt.Sprintf("status %+v", p.supervisor.Status())
		})
	})
}
