package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchyard/internal/signintest"
)

// TestNoSecretIsShown sends valid and invalid secrets through every flow, and searches for them in the logs of every level, the
// metrics, all pages, every other response, and the database.
func TestNoSecretIsShown(t *testing.T) {
	t.Parallel()
	const (
		admin, wrongAdmin = "canary-admin", "canary-wrong-admin"
		projectToken      = "canary-project-token"
		password          = "canary-password"
		signing           = "canary-signing"
	)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no: "+r.Header.Get("Authorization"), http.StatusInternalServerError)
	}))
	defer upstream.Close()
	provider := signintest.New(t)
	dir := t.TempDir()
	cmd := switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data", "--bot-config=DIR/bot.toml",
		"--credentials=DIR/credentials.json", "--log-level=debug", "--poll-interval=10ms")
	cmd.Env = append(cmd.Env, "SWITCHYARD_ADMIN_TOKEN="+admin,
		"SWITCHYARD_OAUTH_AUTHORIZE_URL="+provider.AuthorizeURL, "SWITCHYARD_OAUTH_TOKEN_URL="+provider.TokenURL,
		"SWITCHYARD_OAUTH_CLIENT_ID="+signintest.ClientID, "SWITCHYARD_OAUTH_PRODUCT="+signintest.Product)
	p := start(t, cmd)

	answers := map[string]string{} // what was said, by request
	send := func(method, path, bearer, media, body string) (int, string, http.Header) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+bearer)
		request.Header.Set("Content-Type", media)
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text), response.Header
	}
	const asJSON, asForm = "application/json", "application/x-www-form-urlencoded"
	say := func(want int, method, path, bearer, media, body string) string {
		t.Helper()
		status, text, headers := send(method, path, bearer, media, body)
		if status != want {
			t.Errorf("%s %s: %d %s, want %d", method, path, status, text, want)
		}
		answers[method+" "+path+" "+bearer] += text + headers.Get("Location")
		return text
	}

	say(401, "GET", "/api/gateway", wrongAdmin, asJSON, "")
	say(401, "POST", "/login", "", asForm, "token="+wrongAdmin)
	say(303, "POST", "/login", "", asForm, "token="+admin)
	say(200, "POST", "/api/gateway/projects", admin, asJSON, `{"name":"p","url":"`+upstream.URL+`","token":"`+projectToken+`"}`)
	say(400, "POST", "/api/gateway/projects", admin, asJSON, `{"name":"q","url":"http://user:canary-in-url@h"}`)
	say(303, "POST", "/projects/p", admin, asForm, "url="+upstream.URL+"&token="+projectToken)
	for _, config := range []string{
		`{"transport":"matrix","homeserver":"` + upstream.URL + `","username":"bot","password":"` + password + `"}`,
		`{"transport":"team","team_bot_token":"` + password + `","team_signing_secret":"` + signing + `"}`,
	} {
		say(200, "POST", "/api/gateway/bot-config", admin, asJSON, config)
		say(502, "POST", "/api/gateway/bot/test", admin, asJSON, "")
		say(200, "GET", "/bot-config", admin, "", "")
	}
	say(401, "POST", "/bot/team/events", "", asJSON, `{"token":"`+signing+`"}`)

	var named struct{ ID, Token string }
	_, made, _ := send("POST", "/api/gateway/tokens", admin, asJSON, `{"name":"ci","role":"operator"}`)
	_ = json.Unmarshal([]byte(made), &named)
	if named.Token == "" {
		t.Fatalf("no token was given out: %s", made)
	}
	const wrongNamed = "swk_canarywrong"
	say(401, "GET", "/api/gateway", wrongNamed, asJSON, "")
	say(401, "POST", "/login", "", asForm, "token="+wrongNamed)
	say(200, "GET", "/api/gateway", named.Token, asJSON, "")
	say(303, "POST", "/login", "", asForm, "token="+named.Token)
	say(403, "GET", "/api/gateway/bot-config", named.Token, asJSON, "")
	say(403, "GET", "/bot-config", named.Token, "", "")

	secrets := map[string]bool{named.Token: true, wrongNamed: true, admin: true, wrongAdmin: true, password: true, signing: true, "canary-in-url": true}
	_, text, _ := send("POST", "/gateway/tokens", admin, "", "")
	var given struct{ Token, Secret string }
	_ = json.Unmarshal([]byte(text), &given)
	secrets[given.Token] = true
	_, text, _ = send("POST", "/gateway/agents", "", asJSON, `{"token":"`+given.Token+`","label":"b"}`)
	_ = json.Unmarshal([]byte(text), &given)
	secrets[given.Secret] = true
	if given.Token == "" || given.Secret == "" {
		t.Fatalf("no agent joined: %s", text)
	}
	say(401, "POST", "/gateway/agents", "", asJSON, `{"token":"`+given.Token+`"}`)
	say(401, "POST", "/gateway/agents/x/heartbeat", given.Secret, asJSON, `{}`)

	_, _, headers := send("GET", "/oauth/authorize", admin, "", "")
	callback := provider.Approve(t, headers.Get("Location"))
	_, query, _ := strings.Cut(callback, "?")
	say(200, "GET", "/callback?"+query, "", "", "")
	say(400, "GET", "/callback?"+query, "", "", "")
	say(200, "GET", "/oauth/status", admin, "", "")
	for _, path := range []string{
		"/", "/projects", "/projects/p", "/agents", "/events", "/login", "/metrics", "/api/gateway", "/api/gateway/pipeline",
		"/api/gateway/events", "/api/gateway/attention", "/api/gateway/bot", "/gateway/agents", "/api/openapi.json", "/healthz", "/readyz",
		"/access", "/audit", "/api/gateway/audit?limit=200", "/api/gateway/tokens", "/api/gateway/sessions",
	} {
		want := 200
		if path == "/login" {
			want = 303
		}
		if status, text, _ := send("GET", path, admin, "", ""); status == want || path == "/login" {
			answers["GET "+path] = text
		} else {
			t.Errorf("GET %s: %d", path, status)
		}
	}
	if status, _ := p.stop(t, syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	for _, secret := range provider.Secrets() {
		secrets[secret] = true
	}
	database := ""
	for _, name := range []string{"switchyard.db", "switchyard.db-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, "data", name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		database += string(data)
	}
	for secret := range secrets {
		if strings.Contains(database, secret) {
			t.Errorf("the database holds %s", secret)
		}
	}
	secrets[projectToken] = true // the database must hold it, to send it
	for secret := range secrets {
		if strings.Contains(p.stderr.String(), secret) {
			t.Errorf("the log holds %s:\n%s", secret, &p.stderr)
		}
		for request, text := range answers {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %s:\n%s", request, secret, text)
			}
		}
	}
}
