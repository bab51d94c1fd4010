package handlers_test

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
)

// asAdmin sends JSON with the admin token.
func (g guarded) asAdmin(method, path, body string) *http.Response {
	return g.send(here, method, path, body, "Authorization", "Bearer "+gatewaytest.AdminToken, "Content-Type", "application/json")
}

func decodeBody(t *testing.T, r *http.Response, to any) {
	t.Helper()
	if err := json.NewDecoder(r.Body).Decode(to); err != nil {
		t.Fatal(err)
	}
}

type givenToken struct {
	ID, Name, Role, Token string
	ExpiresMS             *int64 `json:"expires_at_ms"`
}

func (g guarded) giveToken(t *testing.T, body string) givenToken {
	t.Helper()
	answer := g.asAdmin("POST", "/api/gateway/tokens", body)
	if answer.StatusCode != 201 || answer.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("a token: %d, Cache-Control %q", answer.StatusCode, answer.Header.Get("Cache-Control"))
	}
	var given givenToken
	decodeBody(t, answer, &given)
	return given
}

func (g guarded) statusWith(token, path string) int {
	return g.send(here, "GET", path, "", "Authorization", "Bearer "+token).StatusCode
}

func TestANamedTokenIsUsedWhereTheAdminTokenIs(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
	given := g.giveToken(t, `{"name":" dashboard ","role":"viewer"}`)
	if given.Name != "dashboard" || given.Role != "viewer" || given.ExpiresMS != nil || !regexp.MustCompile(`^swk_[a-z2-7]{32,}$`).MatchString(given.Token) {
		t.Errorf("given: %+v", given)
	}
	for path, want := range map[string]int{"/api/gateway": 200, "/": 200, "/metrics": 200, "/api/gateway/bot-config": 403, "/bot-config": 403} {
		if got := g.statusWith(given.Token, path); got != want {
			t.Errorf("%s with the token: %d, want %d", path, got, want)
		}
	}
	login := g.logIn(here, given.Token, "/agents")
	if login.StatusCode != 303 || login.Header.Get("Location") != "/agents" || len(login.Cookies()) != 1 {
		t.Fatalf("login with the token: %d", login.StatusCode)
	}
	cookie := login.Cookies()[0].Name + "=" + login.Cookies()[0].Value
	session := func(path string) int { return g.send(here, "GET", path, "", "Cookie", cookie).StatusCode }
	if read, write := session("/api/gateway"), session("/api/gateway/bot-config"); read != 200 || write != 403 {
		t.Errorf("its session may read: %d, and the bot configuration: %d", read, write)
	}

	list := g.asAdmin("GET", "/api/gateway/tokens", "")
	var tokens struct{ Tokens []map[string]any }
	decodeBody(t, list, &tokens)
	if len(tokens.Tokens) != 1 || len(tokens.Tokens[0]) != 7 || tokens.Tokens[0]["created_by"] != "admin" || tokens.Tokens[0]["id"] != given.ID || tokens.Tokens[0]["last_used_at_ms"] == nil {
		t.Errorf("the list: %v", tokens)
	}
	if got := g.asAdmin("DELETE", "/api/gateway/tokens/"+given.ID, "").StatusCode; got != 204 {
		t.Errorf("revoking: %d", got)
	}
	if got := g.asAdmin("DELETE", "/api/gateway/tokens/"+given.ID, "").StatusCode; got != 404 {
		t.Errorf("revoking again: %d", got)
	}
	for name, at := range map[string]guarded{"at once": g, "after a restart": g.again(t, gatewaytest.AdminToken, "key")} {
		if got := at.statusWith(given.Token, "/api/gateway"); got != 401 {
			t.Errorf("the revoked token %s: %d", name, got)
		}
		if got := at.send(here, "GET", "/api/gateway", "", "Cookie", cookie).StatusCode; got != 401 {
			t.Errorf("its session %s: %d", name, got)
		}
	}
	if strings.Contains(g.log.String(), given.Token) {
		t.Error("the log has the token")
	}
}

func TestWhatCannotBeANamedToken(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
	for body, want := range map[string]int{
		`{"name":"","role":"viewer"}`:                                        400,
		`{"name":"  ","role":"viewer"}`:                                      400,
		`{"name":"a\u0000b","role":"viewer"}`:                                400,
		`{"name":"` + strings.Repeat("x", 101) + `","role":"viewer"}`:        400,
		`{"name":7,"role":"viewer"}`:                                         400,
		`{"role":"viewer"}`:                                                  400,
		`{"name":"a"}`:                                                       400,
		`{"name":"a","role":"root"}`:                                         400,
		`{"name":"a","role":"Viewer"}`:                                       400,
		`{"name":"a","role":"viewer","expires_in":"soon"}`:                   400,
		`{"name":"a","role":"viewer","expires_in":"-1h"}`:                    400,
		`{"name":"a","role":"viewer","expires_in":"0s"}`:                     400,
		`{"name":"a","role":"viewer","expires_in":7}`:                        400,
		`{"name":"a","role":"viewer","expires_in":""}`:                       400,
		`{"name":"` + strings.Repeat("é", 100) + `","role":"admin"}`:         201,
		`{"name":"a","role":"operator","expires_in":"1h30m","unknown":true}`: 201,
		`{"name":"a","role":"operator","expires_in":null}`:                   201,
	} {
		if answer := g.asAdmin("POST", "/api/gateway/tokens", body); answer.StatusCode != want {
			t.Errorf("%.80s: %d %s, want %d", body, answer.StatusCode, bodyOf(answer), want)
		}
	}
}

func TestATokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, gatewaytest.AdminToken, "key")
		given := g.giveToken(t, `{"name":"ci","role":"operator","expires_in":"1h"}`)
		if want := time.Now().Add(time.Hour).UnixMilli(); given.ExpiresMS == nil || *given.ExpiresMS != want {
			t.Errorf("it expires at %v, want %d", given.ExpiresMS, want)
		}
		login := g.logIn(here, given.Token, "").Cookies()[0]
		before := g.statusWith(given.Token, "/api/gateway")
		time.Sleep(time.Hour)
		after := g.statusWith(given.Token, "/api/gateway")
		session := g.send(here, "GET", "/api/gateway", "", "Cookie", login.Name+"="+login.Value).StatusCode
		if before != 200 || after != 401 || session != 401 {
			t.Errorf("before: %d; after: %d, its session %d", before, after, session)
		}
	})
}

// TestWhatWaitsEndsWithItsToken: a held request is answered when its token ends.
func TestWhatWaitsEndsWithItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, gatewaytest.AdminToken, "key")
		id, token := gatewaytest.NamedToken(t, g.service, "watcher", domain.RoleViewer)
		answered := make(chan int)
		go func() { answered <- g.statusWith(token, "/api/gateway/events?after=0&wait=60s") }()
		synctest.Wait()
		began := time.Now()
		if err := g.service.Access.RevokeToken(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		<-answered
		if held := time.Since(began); held > 0 {
			t.Errorf("it was held for %v more", held)
		}
	})
}

func TestSessionsAreListedAndEnded(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
	_, token := gatewaytest.NamedToken(t, g.service, "zoe", domain.RoleOperator)
	kept := g.session(t)
	made := g.logIn(here, token, "").Cookies()[0]
	var list struct{ Sessions []map[string]any }
	decodeBody(t, g.asAdmin("GET", "/api/gateway/sessions", ""), &list)
	var id string
	for _, s := range list.Sessions {
		if len(s) != 6 || s["created_at_ms"] == nil || s["last_seen_ms"] == nil {
			t.Errorf("a session: %v", s)
		}
		if s["who"] == "zoe" && s["via"] == "token" && s["role"] == "operator" {
			id = s["id"].(string)
		}
	}
	if len(list.Sessions) != 2 || id == "" {
		t.Fatalf("sessions: %v", list.Sessions)
	}
	if got := g.asAdmin("DELETE", "/api/gateway/sessions/"+id, "").StatusCode; got != 204 {
		t.Errorf("ending it: %d", got)
	}
	if got := g.asAdmin("DELETE", "/api/gateway/sessions/"+id, "").StatusCode; got != 404 {
		t.Errorf("ending it again: %d", got)
	}
	for name, at := range map[string]guarded{"at once": g, "after a restart": g.again(t, gatewaytest.AdminToken, "key")} {
		for cookie, want := range map[string]int{made.Name + "=" + made.Value: 401, kept: 200} {
			if got := at.send(here, "GET", "/api/gateway", "", "Cookie", cookie).StatusCode; got != want {
				t.Errorf("%s: %d, want %d", name, got, want)
			}
		}
	}
}

func TestWithoutAnAdminTokenNoTokenIsAskedFor(t *testing.T) {
	g := newGuarded(t, "", "key")
	_, token := gatewaytest.NamedToken(t, g.service, "viewer", domain.RoleViewer)
	if got := g.statusWith(token, "/api/gateway/bot-config"); got == 403 {
		t.Error("a named token is in force where nothing is set up")
	}
}

// TestWhoHasAccessSurvivesARestart, including the times of last use, which are written later.
func TestWhoHasAccessSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, gatewaytest.AdminToken, "key")
		given := g.giveToken(t, `{"name":"ci","role":"operator"}`)
		g.session(t)
		time.Sleep(time.Hour)
		g.statusWith(given.Token, "/api/gateway")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { time.Sleep(time.Minute); cancel() }()
		if err := g.service.Access.Run(ctx); err != nil {
			t.Fatal(err)
		}
		restarted := g.again(t, gatewaytest.AdminToken, "key").service.Access
		used, want := restarted.Tokens()[0].LastUsed, time.Now().Add(-time.Minute)
		if len(restarted.Sessions()) != 1 || !used.Equal(want.Truncate(time.Millisecond)) {
			t.Errorf("after a restart: %v, used at %v, want %v", restarted.Sessions(), used, want)
		}
	})
}

// TestWhoHasAccessHoldsOnEveryGateway: what one gateway revokes or ends is invalid on another one on the same database within a
// second; what one issues is valid at once.
func TestWhoHasAccessHoldsOnEveryGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := newGuarded(t, gatewaytest.AdminToken, "key")
		ended, kept := one.session(t), one.session(t)
		revoked := one.giveToken(t, `{"name":"revoked","role":"viewer"}`)
		other := one.again(t, gatewaytest.AdminToken, "key")
		given := one.giveToken(t, `{"name":"given","role":"viewer"}`)
		began := one.session(t)
		answered := make(chan int)
		go func() { answered <- other.statusWith(revoked.Token, "/api/gateway/events?after=0&wait=60s") }()
		synctest.Wait()
		since := time.Now()
		one.send(here, "POST", "/logout", "", "Cookie", ended)
		one.asAdmin("DELETE", "/api/gateway/tokens/"+revoked.ID, "")
		ctx, cancel := context.WithCancel(t.Context())
		following := make(chan error)
		go func() { following <- other.service.Sync(ctx) }()
		defer func() { cancel(); <-following }()
		<-answered
		if held := time.Since(since); held > time.Second {
			t.Errorf("a request of the revoked token was held for %v more", held)
		}
		for cookie, want := range map[string]int{ended: 401, kept: 200, began: 200} {
			if got := other.send(here, "GET", "/api/gateway", "", "Cookie", cookie).StatusCode; got != want {
				t.Errorf("a session: %d, want %d", got, want)
			}
		}
		if gone, here := other.statusWith(revoked.Token, "/api/gateway"), other.statusWith(given.Token, "/api/gateway"); gone != 401 || here != 200 {
			t.Errorf("the revoked token: %d, the new one: %d", gone, here)
		}
	})
}
