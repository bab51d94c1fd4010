package bot_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/yard"
)

func TestTeamWholeCycle(t *testing.T) {
	t.Parallel()
	p, s := team(t)
	if rooms := p.supervisor.Status().Rooms; !slices.Equal(rooms, []string{"#ops"}) {
		t.Errorf("rooms %v", rooms)
	}
	s.do(func() { s.channels["C2"] = "dev" }) // invited meanwhile
	p.gateway.happen("alpha", yard.StoryBlocked, `"story_id":"12_pay","story_name":"<!channel> *Pay* a_b _x_","reason":"R&D"`)
	got := s.waitPosts(2)
	want := "■ *alpha* *blocked* `12_pay` &lt;!channel&gt; ∗Pay∗ a_b ˍxˍ: R&amp;D"
	if got[0] != (channelPost{"C1", want, ""}) || got[1] != (channelPost{"C2", want, ""}) {
		t.Errorf("posted %+v\nwant %s", got, want)
	}
	body := mentioned("Ev1", teamOperator, "<@UBOT> switch “beta two”")
	if w := call(p, "/bot/team/events", body, signature(signingSecret, time.Now(), body)); w.Code != 200 {
		t.Errorf("event = %d %s", w.Code, w.Body)
	}
	if got := s.waitPosts(3)[2]; got.Text != "The active project is now *beta two*." || got.Channel != "C1" {
		t.Errorf("reply %+v", got)
	}
	if err := p.supervisor.SendTest(t.Context()); err != nil {
		t.Errorf("test: %v", err)
	}
	s.waitPosts(5)
	for _, canary := range []string{botToken, signingSecret} {
		if strings.Contains(p.logs.String(), canary) {
			t.Errorf("the log holds %s:\n%s", canary, p.logs)
		}
	}
}

func TestTeamObeysRetryAfterAndSurvivesFailures(t *testing.T) {
	t.Parallel()
	p, s := team(t)
	s.do(func() { s.limited, s.failing = 1, 1 })
	p.gateway.move("alpha", 1)
	if got := s.waitPosts(1); !strings.Contains(got[0].Text, "Story 1") {
		t.Errorf("posts %+v", got)
	}
}

func TestTeamActsOnceOnEachEvent(t *testing.T) {
	t.Parallel()
	p, s := team(t)
	send := func(id string) {
		t.Helper()
		body := mentioned(id, teamOperator, "<@UBOT|yard>: help")
		if w := call(p, "/bot/team/events", body, signature(signingSecret, time.Now(), body)); w.Code != 200 {
			t.Errorf("event = %d %s", w.Code, w.Body)
		}
	}
	send("Ev1")
	s.waitPosts(1)
	send("Ev1")
	p.kill()
	s.do(func() { clear(s.last) }) // the pace is kept within one process
	p.start()
	p.waitState(yard.BotConnected, "")
	send("Ev1")
	send("Ev2")
	s.waitPosts(2)
	send("Ev3")
	if got := s.waitPosts(3); len(got) != 3 {
		t.Errorf("posts %+v", got)
	}
}

func TestTeamCommand(t *testing.T) {
	t.Parallel()
	p, _ := team(t)
	ask := func(user, text string) string {
		t.Helper()
		body := url.Values{"command": {"/yard"}, "user_id": {user}, "text": {text}, "channel_id": {"C1"}}.Encode()
		w := call(p, "/bot/team/commands", body, signature(signingSecret, time.Now(), body))
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
	if got := ask(teamOperator, "switch alpha"); got != `{"response_type":"in_channel","text":"The active project is now *alpha*."}` {
		t.Errorf("operator: %s", got)
	}
	// The same call again, as whoever recorded it would send it, does nothing.
	if err := p.gateway.Switch(t.Context(), "beta two"); err != nil {
		t.Fatal(err)
	}
	body := url.Values{"user_id": {teamOperator}, "text": {"switch alpha"}, "trigger_id": {"1"}}.Encode()
	header := signature(signingSecret, time.Now(), body)
	call(p, "/bot/team/commands", body, header.Clone())
	if err := p.gateway.Switch(t.Context(), "beta two"); err != nil {
		t.Fatal(err)
	}
	if w := call(p, "/bot/team/commands", body, header); w.Code != 200 || p.gateway.Registry().Active != "beta two" {
		t.Errorf("replayed: %d, active %q", w.Code, p.gateway.Registry().Active)
	}
}

func TestTeamChecksSignatures(t *testing.T) {
	t.Parallel()
	p, s := team(t)
	body := `{"type":"url_verification","challenge":"c<1>"}`
	now := time.Now()
	for _, test := range []struct {
		name   string
		header http.Header
		body   string
		status int
	}{
		{"right", signature(signingSecret, now, body), body, 200},
		{"almost old", signature(signingSecret, now.Add(-4*time.Minute), body), body, 200},
		{"wrong secret", signature("other", now, body), body, 401},
		{"empty secret", signature("", now, body), body, 401},
		{"old", signature(signingSecret, now.Add(-6*time.Minute), body), body, 401},
		{"from the future", signature(signingSecret, now.Add(6*time.Minute), body), body, 401},
		{"altered body", signature(signingSecret, now, body), body + " ", 401},
		{"none", http.Header{}, body, 401},
		{"malformed", http.Header{"X-Slack-Signature": {"v0=zz"}, "X-Slack-Request-Timestamp": {"now"}}, body, 401},
		{"no JSON", signature(signingSecret, now, "x"), "x", 400},
		{"too large", signature(signingSecret, now, body), strings.Repeat("x", 2<<20), 413},
	} {
		w := call(p, "/bot/team/events", test.body, test.header)
		if w.Code != test.status {
			t.Errorf("%s: %d %s, want %d", test.name, w.Code, w.Body, test.status)
		}
		if test.status == 200 && w.Body.String() != "c<1>" {
			t.Errorf("%s: challenge %s", test.name, w.Body)
		}
	}
	p.save(yard.BotConfig{Transport: yard.BotTeam, TeamBotToken: s.config().TeamBotToken})
	if w := call(p, "/bot/team/events", body, signature("", now, body)); w.Code != 404 {
		t.Errorf("without a secret: %d", w.Code)
	}
	h := newHomeserver(t)
	p.save(h.config())
	if w := call(p, "/bot/team/commands", body, signature(signingSecret, now, body)); w.Code != 404 {
		t.Errorf("with matrix: %d", w.Code)
	}
}

func TestTeamSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := newWorkspace(t)
	p := newProcess(t, bot.Options{TeamAPIURL: s.http.URL + "/api/"})
	p.start()
	p.save(yard.BotConfig{Transport: yard.BotTeam})
	p.waitState(yard.BotOff, "fill in Bot token, Signing secret")
	config := s.config()
	config.TeamBotToken = ptr(yard.Secret("xoxb-canary-wrong"))
	p.save(config)
	p.waitState(yard.BotFailed, "Slack refuses the bot token (invalid_auth)")
	s.do(func() { s.scope = "groups:read" })
	p.save(s.config())
	p.waitState(yard.BotFailed, "lacks the scope groups:read")
	s.do(func() { s.scope = ""; clear(s.channels) })
	p.save(s.config())
	p.waitState(yard.BotConnected, "/invite")
	s.do(func() { s.failing = 1000 })
	p.save(s.config())
	p.waitState(yard.BotFailed, "status 502")
	s.http.Close()
	p.save(s.config())
	p.waitState(yard.BotFailed, "No answer from 127.0.0.1")
	if strings.Contains(p.logs.String(), "canary") {
		t.Errorf("the log holds a secret:\n%s", p.logs)
	}
}
