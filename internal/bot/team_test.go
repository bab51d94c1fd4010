package bot_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/bottest"
	"switchyard/internal/domain"
)

// teamPosts returns the bot's messages once there are n.
func teamPosts(t *testing.T, s *bottest.Workspace, n int) []bottest.ChannelPost {
	t.Helper()
	var posts []bottest.ChannelPost
	eventually(t, func() string {
		s.Do(func() { posts = slices.Clone(s.Posts) })
		if len(posts) >= n {
			return ""
		}
		return fmt.Sprintf("%d posts, want %d: %+v", len(posts), n, posts)
	})
	return posts
}

// call calls the bot as Slack does.
func call(p *process, path, body string, header http.Header) *httptest.ResponseRecorder {
	return callWith(p, path, strings.NewReader(body), header)
}

func callWith(p *process, path string, body io.Reader, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, body)
	r.Header = header
	w := httptest.NewRecorder()
	p.supervisor.ServeHTTP(w, r)
	return w
}

func mentioned(id, user, text string) string {
	b, _ := json.Marshal(map[string]any{"type": "event_callback", "event_id": id, "event": map[string]any{
		"type": "app_mention", "user": user, "text": text, "channel": "C1",
	}})
	return string(b)
}

// team returns a bot in the channel #ops.
func team(t *testing.T) (*process, *bottest.Workspace) {
	t.Helper()
	s := bottest.NewMemoryWorkspace(t)
	p := newProcess(t, bot.Options{Operators: []string{bottest.TeamOperator}, TeamAPIURL: s.HTTP.URL + "/api"})
	p.gateway.configure(s.Config(), nil)
	p.start()
	p.waitState(domain.BotConnected, "")
	return p, s
}

func TestTeamWholeCycle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, s := team(t)
		if rooms := p.supervisor.Status().Rooms; !slices.Equal(rooms, []string{"#ops"}) {
			t.Errorf("rooms %v", rooms)
		}
		s.Do(func() { s.Channels["C2"] = "dev" }) // invited meanwhile
		p.gateway.happen("alpha", domain.StoryBlocked, `"story_id":"12_pay","story_name":"<!channel> *Pay* a_b _x_","reason":"R&D"`)
		got := teamPosts(t, s, 2)
		want := "■ *alpha* · *blocked* · `12_pay` · &lt;!channel&gt; ∗Pay∗ a_b ˍxˍ: R&amp;D"
		if got[0] != (bottest.ChannelPost{Channel: "C1", Text: want}) || got[1] != (bottest.ChannelPost{Channel: "C2", Text: want}) {
			t.Errorf("posted %+v\nwant %s", got, want)
		}
		body := mentioned("Ev1", bottest.TeamOperator, "<@UBOT> switch “beta two”")
		if w := call(p, "/bot/team/events", body, bottest.Signature(bottest.SigningSecret, time.Now(), body)); w.Code != 200 {
			t.Errorf("event = %d %s", w.Code, w.Body)
		}
		if got := teamPosts(t, s, 3)[2]; got.Text != "The active project is now *beta two*." || got.Channel != "C1" {
			t.Errorf("reply %+v", got)
		}
		if err := p.supervisor.SendTest(t.Context()); err != nil {
			t.Errorf("test: %v", err)
		}
		teamPosts(t, s, 5)
		for _, canary := range []string{bottest.BotToken, bottest.SigningSecret} {
			if strings.Contains(p.logs.String(), canary) {
				t.Errorf("the log holds %s:\n%s", canary, p.logs)
			}
		}
	})
}

func TestTeamLeavesAnEndlessListOfChannels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, s := team(t)
		p.kill()
		s.Do(func() { s.Endless = true })
		p.start()
		p.waitState(domain.BotConnected, "")
		if rooms := p.supervisor.Status().Rooms; !slices.Equal(rooms, []string{"#ops"}) {
			t.Errorf("rooms %v", rooms)
		}
	})
}

func TestTeamObeysRetryAfterAndSurvivesFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, s := team(t)
		s.Do(func() { s.Limited, s.Failing = 1, 1 })
		p.gateway.move("alpha", 1)
		if got := teamPosts(t, s, 1); !strings.Contains(got[0].Text, "Story 1") {
			t.Errorf("posts %+v", got)
		}
	})
}

func TestTeamAnswersWhatWasSaidBeforeItConnected(t *testing.T) {
	t.Parallel()
	p, s := team(t)
	p.kill()
	s.Do(func() { // no call is answered meanwhile
		p.start()
		p.waitState(domain.BotConnecting, "")
		body := mentioned("Ev1", bottest.TeamOperator, "<@UBOT> help")
		if w := call(p, "/bot/team/events", body, bottest.Signature(bottest.SigningSecret, time.Now(), body)); w.Code != 200 {
			t.Errorf("event = %d %s", w.Code, w.Body)
		}
	})
	if got := teamPosts(t, s, 1); !strings.Contains(got[0].Text, "this list") || strings.Contains(got[0].Text, "UBOT") {
		t.Errorf("posts %+v", got)
	}
}

func TestTeamSaysThatATestTookTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _ := team(t)
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		err := p.supervisor.SendTest(ctx)
		if domain.CodeOf(err) != domain.BadGateway || domain.MessageOf(err) != "not sent to #ops: it took too long" {
			t.Errorf("test: %v", err)
		}
	})
}

func TestTeamActsOnceOnEachEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, s := team(t)
		send := func(id string) {
			t.Helper()
			body := mentioned(id, bottest.TeamOperator, "<@UBOT|yard>: help")
			if w := call(p, "/bot/team/events", body, bottest.Signature(bottest.SigningSecret, time.Now(), body)); w.Code != 200 {
				t.Errorf("event = %d %s", w.Code, w.Body)
			}
		}
		send("Ev1")
		teamPosts(t, s, 1)
		send("Ev1")
		p.kill()
		s.Do(func() { clear(s.Last) }) // the rate is limited within one process
		p.start()
		p.waitState(domain.BotConnected, "")
		send("Ev1")
		send("Ev2")
		teamPosts(t, s, 2)
		send("Ev3")
		if got := teamPosts(t, s, 3); len(got) != 3 {
			t.Errorf("posts %+v", got)
		}
	})
}

func TestTeamCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _ := team(t)
		ask := func(user, text string) string {
			t.Helper()
			body := url.Values{"command": {"/yard"}, "user_id": {user}, "text": {text}, "channel_id": {"C1"}}.Encode()
			w := call(p, "/bot/team/commands", body, bottest.Signature(bottest.SigningSecret, time.Now(), body))
			if w.Code != 200 {
				t.Errorf("%s = %d %s", text, w.Code, w.Body)
			}
			return w.Body.String()
		}
		if got := ask("U2", "switch alpha"); !strings.Contains(got, "only operators may use `switch`") {
			t.Errorf("stranger: %s", got)
		}
		if got := p.gateway.Registry().Active; got != "" {
			t.Errorf("active is %q", got)
		}
		if got := ask(bottest.TeamOperator, "switch alpha"); got != `{"response_type":"in_channel","text":"The active project is now *alpha*."}` {
			t.Errorf("operator: %s", got)
		}
		// The same call again, as in a replay attack, does nothing.
		if err := p.gateway.Switch(t.Context(), "beta two"); err != nil {
			t.Fatal(err)
		}
		body := url.Values{"user_id": {bottest.TeamOperator}, "text": {"switch alpha"}, "trigger_id": {"1"}}.Encode()
		header := bottest.Signature(bottest.SigningSecret, time.Now(), body)
		call(p, "/bot/team/commands", body, header.Clone())
		if err := p.gateway.Switch(t.Context(), "beta two"); err != nil {
			t.Fatal(err)
		}
		if w := call(p, "/bot/team/commands", body, header); w.Code != 200 || p.gateway.Registry().Active != "beta two" {
			t.Errorf("replayed: %d, active %q", w.Code, p.gateway.Registry().Active)
		}
	})
}

func TestTeamChecksSignatures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _ := team(t)
		body := `{"type":"url_verification","challenge":"c<1>"}`
		now := time.Now()
		for _, test := range []struct {
			name   string
			header http.Header
			body   string
			status int
		}{
			{"right", bottest.Signature(bottest.SigningSecret, now, body), body, 200},
			{"almost old", bottest.Signature(bottest.SigningSecret, now.Add(-4*time.Minute), body), body, 200},
			{"wrong secret", bottest.Signature("other", now, body), body, 401},
			{"empty secret", bottest.Signature("", now, body), body, 401},
			{"old", bottest.Signature(bottest.SigningSecret, now.Add(-6*time.Minute), body), body, 401},
			{"from the future", bottest.Signature(bottest.SigningSecret, now.Add(6*time.Minute), body), body, 401},
			{"altered body", bottest.Signature(bottest.SigningSecret, now, body), body + " ", 401},
			{"none", http.Header{}, body, 401},
			{"malformed", http.Header{"X-Slack-Signature": {"v0=zz"}, "X-Slack-Request-Timestamp": {"now"}}, body, 401},
			{"no JSON", bottest.Signature(bottest.SigningSecret, now, "x"), "x", 400},
			{"too large", bottest.Signature(bottest.SigningSecret, now, body), strings.Repeat("x", 2<<20), 413},
		} {
			w := call(p, "/bot/team/events", test.body, test.header)
			if w.Code != test.status {
				t.Errorf("%s: %d %s, want %d", test.name, w.Code, w.Body, test.status)
			}
			if test.status == 200 && w.Body.String() != "c<1>" {
				t.Errorf("%s: challenge %s", test.name, w.Body)
			}
		}
		p.save(domain.BotConfig{Transport: domain.BotTeam, Settings: map[string]domain.Secret{"team_bot_token": bottest.BotToken}})
		if w := call(p, "/bot/team/events", body, bottest.Signature("", now, body)); w.Code != 404 {
			t.Errorf("without a secret: %d", w.Code)
		}
		h := bottest.NewMemoryHomeserver(t)
		p.save(h.Config())
		if w := call(p, "/bot/team/commands", body, bottest.Signature(bottest.SigningSecret, now, body)); w.Code != 404 {
			t.Errorf("with matrix: %d", w.Code)
		}
	})
}

func TestTeamSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := bottest.NewWorkspace(t)
	p := newProcess(t, bot.Options{TeamAPIURL: s.HTTP.URL + "/api/"})
	p.start()
	p.save(domain.BotConfig{Transport: domain.BotTeam})
	p.waitState(domain.BotOff, "fill in Bot token, Signing secret")
	config := s.Config()
	config.Settings["team_signing_secret"] = " \t"
	p.save(config)
	p.waitState(domain.BotOff, "fill in Signing secret")
	config = s.Config()
	config.Settings["team_bot_token"] = "xoxb-canary-wrong"
	p.save(config)
	p.waitState(domain.BotFailed, "Slack refuses the bot token (invalid_auth)")
	s.Do(func() { s.Scope = "groups:read" })
	p.save(s.Config())
	p.waitState(domain.BotFailed, "lacks the scope groups:read")
	s.Do(func() { s.Scope = ""; clear(s.Channels) })
	p.save(s.Config())
	p.waitState(domain.BotConnected, "/invite")
	s.Do(func() { s.Failing = 1000 })
	p.save(s.Config())
	p.waitState(domain.BotFailed, "status 502")
	s.HTTP.Close()
	p.save(s.Config())
	p.waitState(domain.BotFailed, "No answer from 127.0.0.1")
	if strings.Contains(p.logs.String(), "canary") {
		t.Errorf("the log holds a secret:\n%s", p.logs)
	}
}

// Slack checks the certificate of the address from time to time, without a signature.
func TestTeamAnswersTheCheckOfItsCertificate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _ := team(t)
		body := "ssl_check=1&token=x&user_id=" + bottest.TeamOperator + "&text=switch+alpha"
		if w := call(p, "/bot/team/commands", body, http.Header{}); w.Code != 200 || w.Body.Len() != 0 {
			t.Errorf("ssl_check = %d %s", w.Code, w.Body)
		}
		if got := p.gateway.Registry().Active; got != "" {
			t.Errorf("it obeyed: active is %q", got)
		}
	})
}

// unreadable fails the test when it is read.
type unreadable struct{ *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.Error("a body without a signature was read")
	return 0, io.EOF
}

func TestTeamReadsNoBodyWithoutASignature(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _ := team(t)
		for _, path := range []string{"/bot/team/events", "/bot/team/commands"} {
			if w := callWith(p, path, unreadable{t}, http.Header{"X-Slack-Signature": {"v0=1"}}); w.Code != http.StatusUnauthorized {
				t.Errorf("%s is answered %d", path, w.Code)
			}
		}
	})
}

func TestTeamPausesWhenSlackNamesNoPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, s := team(t)
		s.Do(func() { s.Limited, s.RetryAfter, s.Calls = 1_000_000, "0", 0 })
		began := time.Now()
		p.gateway.move("alpha", 1)
		eventually(t, func() string {
			calls := 0
			if s.Do(func() { calls = s.Calls }); calls >= 3 {
				return ""
			}
			return "not tried again"
		})
		if took := time.Since(began); took < 500*time.Millisecond {
			t.Errorf("3 calls within %v", took)
		}
	})
}
