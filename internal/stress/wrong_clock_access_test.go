//go:build stress

package stress

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"switchyard/internal/logintest"
)

// shortLife is how long everything that expires is valid in these tests: much less than clocks are wrong.
const shortLife = 5 * time.Second

// TestWrongClocksShutNobodyOut: what one gateway issues is valid at all others until it expires, and no longer.
func TestWrongClocksShutNobodyOut(t *testing.T) {
	provider := logintest.New(t)
	config := filepath.Join(t.TempDir(), "switchyard.toml")
	text := fmt.Sprintf("[login]\nissuer = %q\nclient_id = %q\nadmins = [\"jo@example.com\"]\n", provider.Issuer, logintest.ClientID)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g := newGroupWithWrongClocks(t, rightToken, "SWITCHYARD_JOIN_TOKEN_TTL="+shortLife.String(), "SWITCHYARD_AGENT_TIMEOUT="+shortLife.String(),
		"SWITCHYARD_CONFIG="+config, "SWITCHYARD_LOGIN_CLIENT_SECRET="+logintest.ClientSecret, "SWITCHYARD_PUBLIC_URL=http://yard.example")
	for from, one := range g.members {
		for to, other := range g.members {
			t.Run(fmt.Sprintf("from %d to %d", from, to), func(t *testing.T) {
				pair{t, one, other}.check()
			})
		}
	}
	var audit struct {
		Entries []struct {
			At int64 `json:"at_ms"`
		}
	}
	if _, err := call(t.Context(), "GET", g.members[0].url+"/api/gateway/audit?limit=200", rightToken, nil, &audit); err != nil {
		t.Fatal(err)
	}
	for i, e := range audit.Entries {
		if i > 0 && e.At > audit.Entries[i-1].At+1000 || time.Since(time.UnixMilli(e.At)).Abs() > 30*time.Minute {
			t.Errorf("entry %d of the audit is at %v", i, time.UnixMilli(e.At))
		}
	}
}

// pair is a gateway that issues something and another one that uses it.
type pair struct {
	t          *testing.T
	one, other *member
}

// ask makes a request and returns the status.
func (p pair) ask(m *member, method, path, bearer string, body, reply any) int {
	p.t.Helper()
	status, err := call(p.t.Context(), method, m.url+path, bearer, body, reply)
	if err != nil {
		p.t.Fatal(err)
	}
	return status
}

func (p pair) check() {
	t := p.t
	var first, second, named struct{ Token string }
	p.ask(p.one, "POST", "/gateway/tokens", rightToken, nil, &first)
	p.ask(p.one, "POST", "/gateway/tokens", rightToken, nil, &second)
	if status := p.ask(p.one, "POST", "/api/gateway/tokens", rightToken, map[string]string{"name": "script", "role": "viewer", "expires_in": shortLife.String()}, &named); status != http.StatusCreated {
		t.Fatalf("a named token: %d", status)
	}
	given := time.Now()
	var joined struct {
		Agent  struct{ ID string }
		Secret string
	}
	if status := p.ask(p.other, "POST", "/gateway/agents", "", map[string]string{"token": first.Token}, &joined); status != http.StatusCreated {
		t.Errorf("a join token: %d", status)
	}
	if status := p.ask(p.one, "POST", "/gateway/agents/"+joined.Agent.ID+"/heartbeat", joined.Secret, map[string]string{}, nil); status != http.StatusOK {
		t.Errorf("a heartbeat: %d", status)
	}
	if status := p.ask(p.other, "GET", "/api/gateway", named.Token, nil, nil); status != http.StatusOK {
		t.Errorf("a named token that has just been made: %d", status)
	}
	alive := func(m *member) bool {
		var agents []struct{ ID string }
		p.ask(m, "GET", "/gateway/agents", rightToken, nil, &agents)
		for _, a := range agents {
			if a.ID == joined.Agent.ID {
				return true
			}
		}
		return false
	}
	if !until(everywhere, func() bool { return alive(p.one) && alive(p.other) }) {
		t.Error("an agent is not listed everywhere")
	}
	p.login()
	time.Sleep(time.Until(given.Add(shortLife + time.Second)))
	if status := p.ask(p.other, "POST", "/gateway/agents", "", map[string]string{"token": second.Token}, nil); status != http.StatusUnauthorized {
		t.Errorf("a join token that has expired: %d", status)
	}
	if status := p.ask(p.other, "GET", "/api/gateway", named.Token, nil, nil); status != http.StatusUnauthorized {
		t.Errorf("a named token that has expired: %d", status)
	}
	if !until(shortLife, func() bool { return !alive(p.one) && !alive(p.other) }) {
		t.Error("a silent agent is still listed")
	}
}

// login begins a login at one gateway and completes it at the other: the session is valid at the first one until it is
// ended at the other.
func (p pair) login() {
	p.t.Helper()
	browser := http.Client{Timeout: client.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	browse := func(address string, cookies []*http.Cookie) *http.Response {
		p.t.Helper()
		request, err := http.NewRequestWithContext(p.t.Context(), "GET", address, nil)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, c := range cookies {
			request.AddCookie(c)
		}
		answer, err := browser.Do(request)
		if err != nil {
			p.t.Fatal(err)
		}
		answer.Body.Close()
		return answer
	}
	begun := browse(p.one.url+"/login/start", nil)
	back := browse(begun.Header.Get("Location"), nil)
	callback, err := url.Parse(back.Header.Get("Location"))
	if err != nil || callback.Host != "yard.example" {
		p.t.Fatalf("the provider sends people to %v, %v", callback, err)
	}
	ended := browse(p.other.url+callback.RequestURI(), begun.Cookies())
	status := func() int { return browse(p.one.url+"/api/gateway", ended.Cookies()).StatusCode }
	if got := status(); got != http.StatusOK {
		p.t.Errorf("with a session that has just begun: %d", got)
	}
	var list struct{ Sessions []struct{ ID string } }
	p.ask(p.other, "GET", "/api/gateway/sessions", rightToken, nil, &list)
	for _, s := range list.Sessions {
		p.ask(p.other, "DELETE", "/api/gateway/sessions/"+s.ID, rightToken, nil, nil)
	}
	if !until(everywhere, func() bool { return status() == http.StatusUnauthorized }) {
		p.t.Errorf("a session that was ended elsewhere is good after %v", everywhere)
	}
}
