package bot_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/yard"
)

const (
	botToken      = "xoxb-canary-token"
	signingSecret = "canary-signing-secret"
	teamOperator  = "U0OPERATOR"
)

// workspace is Slack's API for one bot: it checks the token and the rate of messages to a channel.
type workspace struct {
	t    *testing.T
	http *httptest.Server

	mu       sync.Mutex
	channels map[string]string // id → name
	posts    []channelPost
	scope    string // missing
	limited  int    // so many of the next calls are refused for being too many
	failing  int    // so many of the next calls fail
	patient  bool   // messages may come faster than one a second
	last     map[string]time.Time
}

type channelPost struct{ Channel, Text, Thread string }

func newWorkspace(t *testing.T) *workspace {
	s := &workspace{t: t, channels: map[string]string{"C1": "ops"}, last: map[string]time.Time{}}
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	return s
}

func (s *workspace) config() yard.BotConfig {
	return yard.BotConfig{
		Transport: yard.BotTeam, TeamBotToken: ptr(yard.Secret(botToken)), TeamSigningSecret: ptr(yard.Secret(signingSecret)),
	}
}

func (s *workspace) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *workspace) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.ParseForm(); err != nil || r.URL.RawQuery != "" {
		s.t.Errorf("%s: %v", r.URL, err)
	}
	fail := func(code string) { reply(w, map[string]any{"ok": false, "error": code, "needed": s.scope}) }
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	switch {
	case s.limited > 0:
		s.limited--
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case s.failing > 0:
		s.failing--
		w.WriteHeader(http.StatusBadGateway)
	case r.PostForm.Get("token") != botToken && r.Header.Get("Authorization") != "Bearer "+botToken:
		fail("invalid_auth")
	case method == "auth.test":
		reply(w, map[string]any{"ok": true, "user_id": "UBOT", "team_id": "T1"})
	case method == "users.conversations" && s.scope != "":
		fail("missing_scope")
	case method == "users.conversations":
		s.conversations(w, r.PostForm)
	case method == "chat.postMessage":
		s.post(w, r.PostForm, fail)
	default:
		s.t.Errorf("no method %s", method)
		fail("unknown_method")
	}
}

// conversations answers one channel at a time, to be paged through.
func (s *workspace) conversations(w http.ResponseWriter, form url.Values) {
	if form.Get("types") != "public_channel,private_channel" {
		s.t.Errorf("types %q", form.Get("types"))
	}
	at, _ := strconv.Atoi(form.Get("cursor"))
	channels, next := []any{}, ""
	for i, id := range []string{"C1", "C2"} {
		if s.channels[id] == "" || i < at {
			continue
		}
		if len(channels) == 1 {
			next = strconv.Itoa(i)
			break
		}
		channels = append(channels, map[string]any{"id": id, "name": s.channels[id], "is_member": true})
	}
	reply(w, map[string]any{"ok": true, "channels": channels, "response_metadata": map[string]any{"next_cursor": next}})
}

func (s *workspace) post(w http.ResponseWriter, form url.Values, fail func(string)) {
	channel := form.Get("channel")
	if s.channels[channel] == "" {
		fail("not_in_channel")
		return
	}
	if !s.patient && time.Since(s.last[channel]) < time.Second {
		s.t.Errorf("two messages to %s within %v", channel, time.Since(s.last[channel]))
	}
	s.last[channel] = time.Now()
	s.posts = append(s.posts, channelPost{channel, form.Get("text"), form.Get("thread_ts")})
	reply(w, map[string]any{"ok": true, "channel": channel, "ts": "1.1"})
}

func (s *workspace) waitPosts(n int) []channelPost {
	s.t.Helper()
	var posts []channelPost
	eventually(s.t, func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if posts = append([]channelPost(nil), s.posts...); len(posts) >= n {
			return ""
		}
		return fmt.Sprintf("%d posts, want %d: %+v", len(posts), n, posts)
	})
	return posts
}

// signature signs a call as Slack does.
func signature(secret string, at time.Time, body string) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + stamp + ":" + body))
	header := http.Header{}
	header.Set("X-Slack-Request-Timestamp", stamp)
	header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return header
}

// call calls the bot as Slack does.
func call(p *process, path, body string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header = header
	w := httptest.NewRecorder()
	if path == "/bot/team/events" {
		p.supervisor.TeamEvents(w, r)
	} else {
		p.supervisor.TeamCommands(w, r)
	}
	return w
}

func mentioned(id, user, text string) string {
	b, _ := json.Marshal(map[string]any{"type": "event_callback", "event_id": id, "event": map[string]any{
		"type": "app_mention", "user": user, "text": text, "channel": "C1",
	}})
	return string(b)
}

// team returns a bot in the channel #ops.
func team(t *testing.T) (*process, *workspace) {
	t.Helper()
	s := newWorkspace(t)
	p := newProcess(t, bot.Options{Operators: []string{teamOperator}, TeamAPIURL: s.http.URL + "/api"})
	p.gateway.configure(s.config(), nil)
	p.start()
	p.waitState(yard.BotConnected, "")
	return p, s
}
