package bottest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// Secrets that the bot and Slack share, and the bot's operator.
const (
	BotToken      = "xoxb-canary-token"
	SigningSecret = "canary-signing-secret"
	TeamOperator  = "U0OPERATOR"
)

// Workspace is Slack's API for one bot. It checks the token and the rate of messages to each channel. Use its
// exported fields, except HTTP, only within Do.
type Workspace struct {
	HTTP     *httptest.Server  // the API is below /api/
	Channels map[string]string // of C1 and C2, where the bot is a member → name
	Posts    []ChannelPost
	Last     map[string]time.Time // the time of each channel's last message
	Scope    string               // a missing scope
	Calls    int                  // the number of calls so far
	Limited  int                  // how many of the next calls are refused with a rate limit
	// RetryAfter is the pause, in seconds, that such a refusal demands.
	RetryAfter string
	Failing    int    // how many of the next calls fail
	Patient    bool   // more than one message a second is allowed
	ReadOnly   string // a channel in which the bot must not post
	Endless    bool   // each page of channels names a next one

	t  testing.TB
	mu sync.Mutex
}

// ChannelPost is a message in a channel.
type ChannelPost struct{ Channel, Text, Thread string }

// NewWorkspace starts a workspace that ends with the test. The bot is in #ops.
func NewWorkspace(t testing.TB) *Workspace {
	s := newWorkspace(t)
	s.HTTP = httptest.NewServer(s)
	t.Cleanup(s.HTTP.Close)
	return s
}

// NewMemoryWorkspace is NewWorkspace in memory, for tests with fake time.
func NewMemoryWorkspace(t testing.TB) *Workspace {
	s := newWorkspace(t)
	s.HTTP = NewServer(t, s)
	return s
}

func newWorkspace(t testing.TB) *Workspace {
	return &Workspace{t: t, RetryAfter: "1", Channels: map[string]string{"C1": "ops"}, Last: map[string]time.Time{}}
}

// Config returns a valid configuration for a bot in this workspace.
func (s *Workspace) Config() domain.BotConfig {
	return domain.BotConfig{Transport: domain.BotTeam, Settings: map[string]domain.Secret{
		"team_bot_token": BotToken, "team_signing_secret": SigningSecret,
	}}
}

// Do calls f while no call is in progress.
func (s *Workspace) Do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *Workspace) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.ParseForm(); err != nil || r.URL.RawQuery != "" {
		s.t.Errorf("%s: %v", r.URL, err)
	}
	fail := func(code string) { reply(w, map[string]any{"ok": false, "error": code, "needed": s.Scope}) }
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	s.Calls++
	switch {
	case s.Limited > 0:
		s.Limited--
		w.Header().Set("Retry-After", s.RetryAfter)
		w.WriteHeader(http.StatusTooManyRequests)
	case s.Failing > 0:
		s.Failing--
		w.WriteHeader(http.StatusBadGateway)
	case r.PostForm.Get("token") != BotToken && r.Header.Get("Authorization") != "Bearer "+BotToken:
		fail("invalid_auth")
	case method == "auth.test":
		reply(w, map[string]any{"ok": true, "user_id": "UBOT", "team_id": "T1"})
	case method == "users.conversations" && s.Scope != "":
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

// conversations returns pages of one channel each.
func (s *Workspace) conversations(w http.ResponseWriter, form url.Values) {
	if form.Get("types") != "public_channel,private_channel" {
		s.t.Errorf("types %q", form.Get("types"))
	}
	at, _ := strconv.Atoi(form.Get("cursor"))
	channels, next := []any{}, ""
	for i, id := range []string{"C1", "C2"} {
		if s.Channels[id] == "" || i < at {
			continue
		}
		if len(channels) == 1 {
			next = strconv.Itoa(i)
			break
		}
		channels = append(channels, map[string]any{"id": id, "name": s.Channels[id], "is_member": true})
	}
	if s.Endless {
		next = form.Get("cursor") + "0"
	}
	reply(w, map[string]any{"ok": true, "channels": channels, "response_metadata": map[string]any{"next_cursor": next}})
}

func (s *Workspace) post(w http.ResponseWriter, form url.Values, fail func(string)) {
	channel := form.Get("channel")
	if channel == s.ReadOnly {
		fail("restricted_action")
		return
	}
	if s.Channels[channel] == "" {
		fail("not_in_channel")
		return
	}
	if !s.Patient && time.Since(s.Last[channel]) < time.Second {
		s.t.Errorf("two messages to %s within %v", channel, time.Since(s.Last[channel]))
	}
	s.Last[channel] = time.Now()
	s.Posts = append(s.Posts, ChannelPost{channel, form.Get("text"), form.Get("thread_ts")})
	reply(w, map[string]any{"ok": true, "channel": channel, "ts": "1." + strconv.Itoa(len(s.Posts))})
}

// Signature returns the headers with which Slack signs a request.
func Signature(secret string, at time.Time, body string) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + stamp + ":" + body))
	header := http.Header{}
	header.Set("X-Slack-Request-Timestamp", stamp)
	header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return header
}
