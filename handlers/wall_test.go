package handlers_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"switchyard/internal/gatewaytest"
)

// TestAWallDisplayShowsTheWallAndNothingElse: its link becomes a cookie, which is worth nothing anywhere else, until it is
// revoked.
func TestAWallDisplayShowsTheWallAndNothingElse(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
	answer := g.asAdmin("POST", "/api/gateway/tokens", `{"name":"hall","role":"wall"}`)
	var given struct{ ID, Role, Token, URL string }
	decodeBody(t, answer, &given)
	if answer.StatusCode != 201 || given.Role != "wall" || !strings.HasSuffix(given.URL, "/wall?token="+given.Token) {
		t.Fatalf("%d %+v", answer.StatusCode, given)
	}

	opened := g.send(here, "GET", "/wall?token="+given.Token, "")
	if opened.StatusCode != http.StatusSeeOther || opened.Header.Get("Location") != "/wall" || len(opened.Cookies()) != 1 {
		t.Fatalf("the link: %d to %q with %d cookies", opened.StatusCode, opened.Header.Get("Location"), len(opened.Cookies()))
	}
	for answer, want := range map[*http.Response]string{opened: "no-referrer", g.asAdmin("GET", "/wall", ""): "same-origin"} {
		if got := answer.Header.Get("Referrer-Policy"); got != want {
			t.Errorf("%s says Referrer-Policy: %s, want %s", answer.Request.URL.Path, got, want)
		}
	}
	cookie := opened.Cookies()[0]
	if !cookie.HttpOnly || cookie.MaxAge < 365*24*60*60 {
		t.Errorf("the cookie is %+v", cookie)
	}
	with := "Cookie"
	value := cookie.Name + "=" + cookie.Value
	page := func(path string) (int, string) {
		answer := g.send(here, "GET", path, "", with, value)
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	if status, text := page("/wall"); status != 200 || !strings.Contains(text, "<span>Switchyard</span>") || strings.Contains(text, "<form") || strings.Contains(text, "<nav") {
		t.Errorf("the wall: %d %.600s", status, text)
	}
	for _, path := range []string{"/", "/events", "/projects", "/access"} {
		if answer := g.send(here, "GET", path, "", with, value); answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location")[:6] != "/login" {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
	for _, path := range []string{"/api/gateway", "/api/gateway/events", "/gateway/agents"} {
		if status, _ := page(path); status != 401 {
			t.Errorf("%s with the cookie: %d", path, status)
		}
		if got := g.statusWith(given.Token, path); got != 401 {
			t.Errorf("%s with the token as bearer: %d", path, got)
		}
	}
	if answer := g.logIn(here, given.Token, "/"); answer.StatusCode != 401 || len(answer.Cookies()) > 0 {
		t.Errorf("logging in with it: %d", answer.StatusCode)
	}

	if answer := g.asAdmin("DELETE", "/api/gateway/tokens/"+given.ID, ""); answer.StatusCode != 204 {
		t.Fatalf("revoking: %d", answer.StatusCode)
	}
	const says = "This display&#39;s link was revoked; Access makes a new one."
	if status, text := page("/wall"); status != 401 || !strings.Contains(text, says) {
		t.Errorf("revoked: %d %s", status, text)
	}
	if status, text := page("/wall?token=" + given.Token); status != 401 || !strings.Contains(text, says) {
		t.Errorf("the revoked link: %d %s", status, text)
	}
	if status, text := page("/wall?token=swk_none"); status != 401 || !strings.Contains(text, says) {
		t.Errorf("an unknown link: %d %s", status, text)
	}
	if answer := g.send(here, "GET", "/wall?token=", ""); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a link that lost its token: %d", answer.StatusCode)
	}
	if answer := g.send(here, "GET", "/wall", ""); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("without anything: %d", answer.StatusCode)
	}
	if got := g.statusWith(gatewaytest.AdminToken, "/wall"); got != 200 {
		t.Errorf("an administrator: %d", got)
	}
}
