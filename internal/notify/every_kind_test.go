package notify_test

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/notify"
	"switchyard/internal/pushtest"
)

// everyKind has an address of each kind that is reached over HTTP, without TLS where that is possible. Its secrets begin with
// "canary".
var everyKind = []string{
	"https://hooks.example/canary-path?key=canary-key", "http://canary-user:canary-password@hooks.example/canary-path",
	"ntfy://me:canary-password@ntfy.example/canary-topic?scheme=http", "gotify://gotify.example/canary-token?disabletls=yes",
	"mattermost://chat.example/canary-key?disabletls=yes", "discord://canary-token@123", "slack://hook:canaryA-canaryB-canaryC@webhook",
	"telegram://12:canary-token@telegram?chats=canary-chat", "pushover://shoutrrr:canary-token@canary-user/", "webpush",
}

// targetOf returns a target of a kind; host is that of browsers' push service.
func targetOf(kind, host string) domain.Target {
	if kind != "webpush" {
		return target(kind)
	}
	key, _ := ecdh.P256().GenerateKey(rand.Reader)
	encode := base64.RawURLEncoding.EncodeToString
	d := domain.PushDevice{
		Endpoint: "http://" + host + "/canary-endpoint", P256dh: encode(key.PublicKey().Bytes()), Auth: encode([]byte("sixteen bytes ok")),
	}
	return domain.Target{URL: d.Address()}
}

// TestNoKindIsLedAstrayByItsReceiver: it follows no redirect, reads little of an answer without end, and keeps the secrets of its
// address out of what it says about an answer that repeats them.
func TestNoKindIsLedAstrayByItsReceiver(t *testing.T) {
	for _, scheme := range notify.Schemes() {
		isTried := func(address string) bool { return strings.HasPrefix(address, scheme+":") }
		if scheme != "mailto" && !slices.ContainsFunc(everyKind, isTried) {
			t.Errorf("no address of %s is tried", scheme)
		}
	}
	for _, kind := range everyKind {
		t.Run(kind, func(t *testing.T) {
			var asked atomic.Int32
			answer := func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				http.Redirect(w, r, "http://elsewhere.example/", http.StatusTemporaryRedirect)
			}
			r := newReceiver(t, func(w http.ResponseWriter, request *http.Request) { answer(w, request) })
			to := targetOf(kind, "push.example")
			if sent := r.Send(t.Context(), to, message()); sent.Err == nil || sent.Status != http.StatusTemporaryRedirect || asked.Load() != 1 {
				t.Errorf("a redirect: %+v after %d requests", sent, asked.Load())
			}

			var wrote atomic.Int64
			answer = func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadGateway)
				chunk := strings.Repeat("x", 1<<16)
				for range 1 << 12 {
					if _, err := io.WriteString(w, chunk); err != nil {
						return
					}
					wrote.Add(1 << 16)
				}
			}
			if sent := r.Send(t.Context(), to, message()); sent.Err == nil || sent.Status != http.StatusBadGateway || wrote.Load() > 64<<20 {
				t.Errorf("an endless answer: %+v after %d bytes", sent, wrote.Load())
			}

			for name, part := range map[string]func(received) string{
				"the path": func(got received) string { return got.path }, "the body": func(got received) string { return got.body },
				"a password": func(got received) string { return got.header.Get("Authorization") },
				"a token":    func(got received) string { return got.header.Get("X-Gotify-Key") },
			} {
				answer = func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(http.StatusForbidden)
					_, _ = io.WriteString(w, part(r.got[len(r.got)-1]))
				}
				sent := r.Send(t.Context(), to, message())
				says := domain.MessageOf(sent.Err)
				if sent.Status != http.StatusForbidden || strings.Contains(says, "canary") || strings.Contains(says, "Y2FuYXJ5") || strings.Contains(says, "OmNhbmFyeS") {
					t.Errorf("an answer that repeats %s: %+v", name, sent)
				}
			}
		})
	}
}

// TestTheGuardIsThatOfEveryKind: private addresses are refused when a target is stored, and names that lead to them when it is
// connected.
func TestTheGuardIsThatOfEveryKind(t *testing.T) {
	closed := notify.New(notify.Options{Push: notify.Push{Keys: notify.SomeKeys}})
	for _, address := range []string{"10.0.0.1", "169.254.169.254", "[::1]", "127.0.0.1", "[fd00:ec2::254]", "100.100.100.200"} {
		for _, kind := range []string{"https://HOST/x", "http://HOST/x", "ntfy://HOST/x", "ntfy://HOST/x?scheme=http", "gotify://HOST/x", "mattermost://HOST/x", "webpush"} {
			to := targetOf(strings.ReplaceAll(kind, "HOST", address), address)
			if _, err := closed.Check(t.Context(), to.URL); domain.CodeOf(err) != domain.Invalid || kind != "webpush" && !strings.Contains(domain.MessageOf(err), "address not allowed") {
				t.Errorf("%s on %s: %v", kind, address, err)
			}
		}
	}
	service := pushtest.New(t)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(service.URL(), "http://"))
	host := "localhost:" + port
	for _, kind := range []string{"https://HOST/x", "http://HOST/x", "ntfy://HOST/x?scheme=http", "gotify://HOST/x?disabletls=yes", "mattermost://HOST/x", "webpush"} {
		sent := closed.Send(t.Context(), targetOf(strings.ReplaceAll(kind, "HOST", host), host), message())
		if !strings.Contains(domain.MessageOf(sent.Err), "address not allowed: loopback") {
			t.Errorf("%s: %+v", kind, sent)
		}
	}
	if service.Got() {
		t.Error("something was sent")
	}
}

// TestEveryKindIsGivenTenSeconds.
func TestEveryKindIsGivenTenSeconds(t *testing.T) {
	for _, kind := range everyKind {
		if strings.HasPrefix(kind, "http:") || strings.Contains(kind, "=http") || strings.Contains(kind, "=yes") || kind == "webpush" { // the others need TLS
			t.Run(kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client, server := net.Pipe()
					s := notify.NewOver(client)
					var ended sync.WaitGroup
					ended.Go(func() { _, _ = io.Copy(io.Discard, server) })
					began := time.Now()
					sent := s.Send(context.Background(), targetOf(kind, "push.example"), message())
					if took := time.Since(began); took != 10*time.Second || !strings.HasPrefix(domain.MessageOf(sent.Err), "timed out") {
						t.Errorf("after %v: %+v", took, sent)
					}
					server.Close()
					s.Close()
					ended.Wait()
				})
			})
		}
	}
}
