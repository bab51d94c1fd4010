package signin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/signin"
	"switchyard/internal/signintest"
)

// signIn goes through one sign-in.
func signIn(t *testing.T, p *signintest.Provider, c *signin.Client) (domain.Credentials, error) {
	t.Helper()
	code, state := queryOf(t, p.Approve(t, begin(t, c)))
	return c.Redeem(t.Context(), code, state)
}

func TestTheProviderAcceptsTheExchange(t *testing.T) {
	p := signintest.New(t)
	before := time.Now()
	got, err := signIn(t, p, newClient(p))
	if err != nil {
		t.Fatal(err)
	}
	if got.AccessToken.Reveal() != signintest.AccessToken || got.RefreshToken.Reveal() != signintest.RefreshToken {
		t.Errorf("tokens = %q, %q", got.AccessToken.Reveal(), got.RefreshToken.Reveal())
	}
	if strings.Join(got.Scopes, " ") != signintest.Scope {
		t.Errorf("scopes = %q", got.Scopes)
	}
	earliest, latest := uint64(before.UnixMilli()+3600_000), uint64(time.Now().UnixMilli()+3600_000)
	if got.ExpiresAt < earliest || got.ExpiresAt > latest {
		t.Errorf("expires_at = %d, want from %d to %d", got.ExpiresAt, earliest, latest)
	}
}

func TestAStandardProviderAcceptsTheExchange(t *testing.T) {
	p := signintest.New(t, signintest.Standard)
	c := settings(p)
	c.TokenFormat, c.Scopes = "form", strings.Fields(signintest.StandardScope)
	got, err := signIn(t, p, signin.New(c, nil, slog.New(slog.DiscardHandler)))
	if err != nil || got.AccessToken.Reveal() != signintest.AccessToken || strings.Join(got.Scopes, " ") != signintest.StandardScope {
		t.Errorf("credentials = %+v, %v", got, err)
	}
}

func TestWithoutATokenAddressTheExchangeSaysSo(t *testing.T) {
	c := signin.New(config.SignIn{ClientID: "c", Product: "p"}, nil, slog.New(slog.DiscardHandler))
	address := begin(t, c)
	if !strings.HasPrefix(address, "/sign-in/setup?code=true&client_id=c&") {
		t.Errorf("the address is %s", address)
	}
	_, state := queryOf(t, address)
	_, err := c.Redeem(t.Context(), "code", state)
	wantOutcome(t, err, domain.SignInUnreachable)
	if !strings.Contains(err.Error(), "sign_in.token_url") {
		t.Errorf("error = %v, want the setting named", err)
	}
}

func TestWhatTheTokenEndpointSaysOfItsRefusalIsTold(t *testing.T) {
	p := signintest.New(t)
	c := newClient(p)
	for body, want := range map[string]string{
		`{"error":"invalid_grant","error_description":"the code has expired"}`: "400 Bad Request: invalid_grant: the code has expired",
		`{"error":"invalid_client"}`:                    "400 Bad Request: invalid_client",
		`{"error_description":"no code"}`:               "400 Bad Request: no code",
		`{"error":["invalid"],"error_description":7}`:   "400 Bad Request",
		`{"error":"","error_description":""}`:           "400 Bad Request",
		`<h1>Bad Request</h1>`:                          "400 Bad Request",
		``:                                              "400 Bad Request",
		`{"error":"` + strings.Repeat("é", 5000) + `"}`: "400 Bad Request: " + strings.Repeat("é", 512),
		`{"error":"e","more":"` + strings.Repeat(" ", 2<<20) + `"}`: "400 Bad Request",
	} {
		p.Answer(answer(400, body))
		_, err := signIn(t, p, c)
		wantOutcome(t, err, domain.SignInRefused)
		if got := strings.TrimPrefix(err.Error(), "refused: "); got != want {
			t.Errorf("%.100s: %.200q, want %.200q", body, got, want)
		}
	}
	// Some providers refuse with status 200.
	p.Answer(answer(200, `{"error":"bad_verification_code","error_description":"The code is incorrect"}`))
	_, err := signIn(t, p, c)
	wantOutcome(t, err, domain.SignInUnreadable)
	if !strings.Contains(err.Error(), "bad_verification_code: The code is incorrect") {
		t.Errorf("200 with an error: %v", err)
	}
}

func TestARefusalThatRepeatsSecretsDoesNotTellThem(t *testing.T) {
	p := signintest.New(t)
	c := newClient(p)
	p.Answer(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]string
		json.NewDecoder(r.Body).Decode(&body)
		answer(400, fmt.Sprintf(`{"error":"bad","error_description":"code %s, verifier %s"}`, body["code"], body["code_verifier"]))(w, r)
	})
	_, err := signIn(t, p, c)
	wantOutcome(t, err, domain.SignInRefused)
	if !strings.HasSuffix(err.Error(), "bad: code …, verifier …") {
		t.Errorf("error = %v", err)
	}
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func TestTokenResponsesAreReadStrictly(t *testing.T) {
	const unreadable, refused = domain.SignInUnreadable, domain.SignInRefused
	p := signintest.New(t)
	c := newClient(p)
	for _, test := range []struct {
		status  int
		body    string
		outcome domain.SignInOutcome // "" is success
	}{
		{200, `{"access_token":"a","expires_in":0}`, ""},
		{201, `{"access_token":"a","expires_in":1,"refresh_token":null,"token_type":7,"scope":[],"more":{}}`, ""},
		{299, ` {"access_token":"a","expires_in":18446744073709551615} `, ""},
		{200, `{"access_token":"a","expires_in":18446744073709551616}`, unreadable},
		{200, `{"access_token":"a","expires_in":-1}`, unreadable},
		{200, `{"access_token":"a","expires_in":-0}`, unreadable},
		{200, `{"access_token":"a","expires_in":3600.0}`, unreadable},
		{200, `{"access_token":"a","expires_in":1e3}`, unreadable},
		{200, `{"access_token":"a","expires_in":"3600"}`, unreadable},
		{200, `{"access_token":"a","expires_in":null}`, unreadable},
		{200, `{"access_token":"a","expires_in":true}`, unreadable},
		{200, `{"access_token":"a"}`, unreadable},
		{200, `{"access_token":"a","Expires_In":3600}`, unreadable},
		{200, `{"access_token":"","expires_in":3600}`, unreadable},
		{200, `{"access_token":null,"expires_in":3600}`, unreadable},
		{200, `{"access_token":["a"],"expires_in":3600}`, unreadable},
		{200, `{"expires_in":3600}`, unreadable},
		{200, `{"access_token":"a","expires_in":3600,"refresh_token":1}`, unreadable},
		{200, `{"access_token":"a","expires_in":3600} more`, unreadable},
		{200, `[{"access_token":"a","expires_in":3600}]`, unreadable},
		{200, `null`, unreadable},
		{200, ``, unreadable},
		{200, "{\"access_token\":\"\xff\",\"expires_in\":3600}", unreadable},
		{200, strings.Repeat("[", 100_000), unreadable},
		{200, `<!doctype html><h1>Welcome</h1>`, unreadable},
		{204, ``, unreadable},
		{400, `{"access_token":"a","expires_in":3600}`, refused},
		{401, `{"error":"invalid_client"}`, refused},
		{500, `oops`, refused},
		{503, ``, refused},
		{304, ``, refused},
	} {
		t.Run(fmt.Sprint(test.status, " ", test.body[:min(60, len(test.body))]), func(t *testing.T) {
			p.Answer(answer(test.status, test.body))
			got, err := signIn(t, p, c)
			if test.outcome != "" {
				wantOutcome(t, err, test.outcome)
			} else if err != nil || got.AccessToken.Reveal() != "a" || got.RefreshToken != "" {
				t.Errorf("credentials = %#v, %v", got, err)
			}
		})
	}
}

func TestAnExpiryBeyondCountingSaturates(t *testing.T) {
	p := signintest.New(t)
	c := newClient(p)
	for _, seconds := range []uint64{math.MaxUint64, math.MaxUint64/1000 + 1, math.MaxUint64 / 1000} {
		p.Answer(answer(200, fmt.Sprintf(`{"access_token":"a","expires_in":%d}`, seconds)))
		if got, err := signIn(t, p, c); err != nil || got.ExpiresAt != math.MaxUint64 {
			t.Errorf("expires_in %d: expires_at = %d, %v, want 2^64-1", seconds, got.ExpiresAt, err)
		}
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	var visited atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visited.Add(1) }))
	defer elsewhere.Close()
	p := signintest.New(t)
	c := newClient(p)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{elsewhere.URL, "http://%zz/", ""} {
			p.Answer(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", location)
				w.WriteHeader(status)
			})
			_, err := signIn(t, p, c)
			wantOutcome(t, err, domain.SignInRefused)
		}
	}
	if visited.Load() != 0 {
		t.Errorf("the other host saw %d requests", visited.Load())
	}
}

func TestAnEndlessAnswerIsUnreadableAndTakesLittleMemory(t *testing.T) {
	p := signintest.New(t)
	p.Answer(func(w http.ResponseWriter, r *http.Request) {
		chunk := []byte(strings.Repeat(" ", 1<<20))
		for range 100 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	c := newClient(p)
	code, state := queryOf(t, p.Approve(t, begin(t, c)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := c.Redeem(t.Context(), code, state)
	runtime.ReadMemStats(&after)
	wantOutcome(t, err, domain.SignInUnreadable)
	// Everything allocated in the meantime, including the provider's own megabyte.
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
}

func TestABodyOfExactlyTheLimitIsRead(t *testing.T) {
	const token = `{"access_token":"a","expires_in":1}`
	p := signintest.New(t)
	c := newClient(p)
	p.Answer(answer(200, token+strings.Repeat(" ", 1<<20-len(token))))
	if _, err := signIn(t, p, c); err != nil {
		t.Errorf("1 MiB: %v", err)
	}
	p.Answer(answer(200, token+strings.Repeat(" ", 1<<20-len(token)+1)))
	_, err := signIn(t, p, c)
	wantOutcome(t, err, domain.SignInUnreadable)
}

func TestAProviderThatCannotBeReachedIsNamedWithoutSecrets(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	listener.Close()
	for address, want := range map[string]string{
		"http://" + closed + "/token?key=canary-query": "connection refused",
		"http://[::1/token?key=canary-query":           "not valid",
		"ftp://" + closed + "/token?key=canary-query":  "unsupported protocol",
	} {
		c := signin.New(config.SignIn{AuthorizeURL: "http://id.test/", TokenURL: address, ClientID: "c", Product: "p"}, nil, slog.New(slog.DiscardHandler))
		_, state := queryOf(t, begin(t, c))
		_, err := c.Redeem(t.Context(), "canary-code", state)
		wantOutcome(t, err, domain.SignInUnreachable)
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: error = %v, want one that says %q", address, err, want)
		}
	}
}

func TestACutAnswerIsNone(t *testing.T) {
	p := signintest.New(t)
	c := newClient(p)
	for name, answer := range map[string]http.HandlerFunc{
		"before the status": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"in the body": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"access_token":"a","expires_in":1}`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p.Answer(answer)
			_, err := signIn(t, p, c)
			wantOutcome(t, err, domain.SignInUnreachable)
		})
	}
}

func TestNoWholeAnswerWithinFifteenSecondsIsNone(t *testing.T) {
	for name, serve := range map[string]func(net.Conn){
		"silence": func(net.Conn) {},
		"no body": func(conn net.Conn) { io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n{") },
		"a byte a second": func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
			for {
				<-time.After(time.Second)
				if _, err := conn.Write([]byte(" ")); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := signin.New(config.SignIn{AuthorizeURL: "http://id.test/", TokenURL: "http://id.test/token", ClientID: "c", Product: "p"}, nil, slog.New(slog.DiscardHandler))
				var providers sync.WaitGroup
				transport := signin.NewTransport()
				transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
					ours, theirs := net.Pipe()
					providers.Go(func() {
						if _, err := http.ReadRequest(bufio.NewReader(theirs)); err == nil {
							serve(theirs)
						}
						io.Copy(io.Discard, theirs) // until the client hangs up
						theirs.Close()
					})
					return ours, nil
				}
				c.SetTransport(transport)
				_, state := queryOf(t, begin(t, c))
				start := time.Now()
				_, err := c.Redeem(t.Context(), "code", state)
				wantOutcome(t, err, domain.SignInUnreachable)
				if waited := time.Since(start); waited != 15*time.Second || !strings.Contains(err.Error(), "15s") {
					t.Errorf("gave up after %v with %v, want after 15 s", waited, err)
				}
				providers.Wait()
			})
		})
	}
}
