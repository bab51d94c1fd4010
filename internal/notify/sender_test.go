package notify_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/notify"
)

// TestWebhooksAreSignedAsTheStandardSays: the vector is that of the Standard Webhooks libraries.
func TestWebhooksAreSignedAsTheStandardSays(t *testing.T) {
	const body = `{"test": 2432232314}`
	if got := notify.Sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(body)); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Error(got)
	}
	r := newReceiver(t, nil)
	to := target("https://hooks.example/")
	to.Former, to.FormerUntil = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", time.Now().Add(time.Hour)
	for signatures, until := range map[int]time.Time{2: time.Now().Add(time.Hour), 1: time.Now().Add(-time.Second)} {
		to.FormerUntil = until
		if sent := r.Send(t.Context(), to, message()); sent.Err != nil {
			t.Fatal(sent.Err)
		}
		got := r.last(t)
		stamp := got.header.Get("webhook-timestamp")
		all := strings.Fields(got.header.Get("webhook-signature"))
		if len(all) != signatures || all[0] != notify.Sign(to.Secret, "db_t_7", stamp, []byte(got.body)) {
			t.Errorf("%d signatures: %q", signatures, all)
		}
		if signatures == 2 && all[1] != notify.Sign(to.Former, "db_t_7", stamp, []byte(got.body)) {
			t.Errorf("the former secret does not sign: %q", all)
		}
	}
}

func TestWhatReceiversAnswer(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		status int
		says   string
		pause  time.Duration
	}{
		"accepted": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) }, 202, "", 0},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, 307, "307: redirects are not followed", 0},
		"refused": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such\x07 hook", 404) }, 404, "404 Not Found: no such hook", 0},
		"echo":    {func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no route "+r.URL.Path, 404) }, 404, "404 Not Found", 0},
		"gone":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }, 410, "410 Gone", 0},
		"limited": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(429)
		}, 429, "429 Too Many Requests", 2 * time.Minute},
		"limited in the body, as Telegram does": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(429)
			_, _ = io.WriteString(w, `{"ok":false,"error_code":429,"description":"slow down","parameters":{"retry_after":35}}`)
		}, 429, `429 Too Many Requests: {"ok":false,"error_code":429,"description":"slow down","parameters":{"retry_after":35}}`, 35 * time.Second},
		"limited in the body, as Discord does": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(429)
			_, _ = io.WriteString(w, `{"retry_after":64.5}`)
		}, 429, `429 Too Many Requests: {"retry_after":64.5}`, 64500 * time.Millisecond},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			chunk := strings.Repeat("x", 1<<16)
			for range 1 << 14 {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
		}, 200, "", 0},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "x")
		}, 0, "connection closed before the answer was complete", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, c.answer)
			sent := r.Send(t.Context(), target("https://hooks.example/very-secret-path"), message())
			if sent.Status != c.status || c.says == "" && sent.Err != nil || c.says != "" && domain.MessageOf(sent.Err) != c.says || sent.RetryAfter != c.pause {
				t.Errorf("%+v", sent)
			}
		})
	}
	if elsewhere.Load() > 0 {
		t.Error("a redirect was followed")
	}
}

// TestAHangingReceiverIsGivenTenSeconds, whether it answers nothing or one byte a second.
func TestAHangingReceiverIsGivenTenSeconds(t *testing.T) {
	for name, drip := range map[string]string{"nothing": "", "slowly": "x"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				s := notify.NewOver(client)
				var ended sync.WaitGroup
				asked := make(chan struct{})
				ended.Go(func() {
					_, _ = server.Read(make([]byte, 1)) // an answer before the request would be refused
					close(asked)
					_, _ = io.Copy(io.Discard, server)
				})
				ended.Go(func() {
					if drip == "" {
						return
					}
					<-asked
					fmt.Fprint(server, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
					for _, err := fmt.Fprint(server, drip); err == nil; _, err = fmt.Fprint(server, drip) {
						time.Sleep(time.Second)
					}
				})
				began := time.Now()
				sent := s.Send(t.Context(), target("http://hooks.example/"), message())
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

func TestTheGuardLetsNothingThroughThatItShouldNot(t *testing.T) {
	for address, allowed := range map[string][3]bool{ // by default, with loopback, with private and loopback
		"8.8.8.8": {true, true, true}, "2606:4700::1": {true, true, true},
		"127.0.0.1": {false, true, true}, "::1": {false, true, true}, "::ffff:127.0.0.1": {false, true, true}, "127.9.9.9": {false, true, true},
		"10.0.0.1": {false, false, true}, "192.168.1.1": {false, false, true}, "172.16.0.1": {false, false, true}, "fd12::1": {false, false, true},
		"100.64.0.1": {false, false, true}, "::ffff:10.0.0.1": {false, false, true}, "64:ff9b::a00:1": {false, false, true}, "fec0::1": {false, false, true},
		"169.254.169.254": {}, "fe80::1": {}, "fd00:ec2::254": {}, "100.100.100.200": {}, "0.0.0.0": {}, "::": {}, "224.0.0.1": {}, "255.255.255.255": {}, "::ffff:169.254.1.1": {},
	} {
		for i, g := range []notify.Guard{{}, {Loopback: true}, {Private: true, Loopback: true}} {
			if why := g.Check(netip.MustParseAddr(address), false); (why == "") != allowed[i] {
				t.Errorf("%s with %+v: %q", address, g, why)
			}
		}
		open := notify.Guard{Private: true, Loopback: true}
		if why := open.Check(netip.MustParseAddr(address), true); (why == "") != (allowed[2] && !allowed[0]) {
			t.Errorf("%s without TLS: %q", address, why)
		}
	}
}

// TestTheGuardActsWhenTheConnectionIsMade, whatever the name was.
func TestTheGuardActsWhenTheConnectionIsMade(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	closed := notify.New(notify.Options{})
	for _, url := range []string{"http://localhost:" + port, "https://localhost:" + port, server.URL} {
		sent := closed.Send(t.Context(), target(url), message())
		if !strings.Contains(domain.MessageOf(sent.Err), "address not allowed: loopback") {
			t.Errorf("%s: %+v", url, sent)
		}
	}
	for url, allowed := range map[string]bool{
		server.URL: false, "http://localhost:" + port: false, "https://localhost:" + port: true, "https://127.0.0.1": false, "https://169.254.169.254/": false,
		"http://8.8.8.8/": false, "https://8.8.8.8/": true, "ntfy://8.8.8.8/t?scheme=http": false, "gotify://10.0.0.1/t": false,
	} {
		if _, err := closed.Check(t.Context(), domain.Secret(url)); (err == nil) != allowed {
			t.Errorf("%s is checked: %v", url, err)
		}
	}
	if calls.Load() > 0 {
		t.Errorf("%d requests", calls.Load())
	}
	open := notify.New(notify.Options{Guard: notify.Guard{Loopback: true}})
	defer open.Close()
	if _, err := open.Check(t.Context(), domain.Secret(server.URL)); err != nil {
		t.Error(err)
	}
	if sent := open.Send(t.Context(), target("http://localhost:"+port), message()); sent.Err != nil || calls.Load() != 1 {
		t.Errorf("%+v", sent)
	}
}
