package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"switchyard/internal/pgtest"
	"switchyard/internal/waittest"
)

// checkup runs the doctor and returns the state and the text of each check, by its word.
func checkup(t *testing.T, dir string, status int, args ...string) (states, texts map[string]string) {
	t.Helper()
	cmd := switchyard(t, dir, append([]string{"doctor", "--data=DIR/data", "--bot-config=DIR/bot.toml"}, args...)...)
	out, _ := cmd.Output()
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("exit status %d, want %d", got, status)
	}
	states, texts = map[string]string{}, map[string]string{}
	var words []string
	for line := range strings.Lines(string(out)) {
		parts := regexp.MustCompile(`^(\w+) +(ok|bad) +(.*)\n$`).FindStringSubmatch(line)
		if parts == nil {
			t.Fatalf("the line %q", line)
		}
		words = append(words, parts[1])
		states[parts[1]], texts[parts[1]] = parts[2], parts[3]
	}
	if got := strings.Join(words, " "); got != "addresses clock disk permissions database login bot targets" {
		t.Errorf("checked are %s", got)
	}
	return states, texts
}

func wantChecks(t *testing.T, states map[string]string, bad ...string) {
	t.Helper()
	for word, state := range states {
		isBad := strings.Contains(" "+strings.Join(bad, " ")+" ", " "+word+" ")
		if isBad != (state == "bad") {
			t.Errorf("%s is %s", word, state)
		}
	}
}

func TestTheDoctorIsContentBeforeAStartAndBesideTheGateway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address := freeAddress(t)
	states, _ := checkup(t, dir, 0, "--listen="+address)
	wantChecks(t, states)
	if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
		t.Error("the doctor made the data directory")
	}
	p := start(t, switchyard(t, dir, "gateway", "--data=DIR/data", "--bot-config=DIR/bot.toml", "--listen="+address))
	p.awaitStatus(t, "/readyz", http.StatusOK)
	states, texts := checkup(t, dir, 0, "--listen="+address)
	wantChecks(t, states)
	if !strings.Contains(texts["addresses"], "this gateway") {
		t.Errorf("addresses: %s", texts["addresses"])
	}
	waittest.Until(t, "the version is in the database", func() bool {
		_, texts := checkup(t, dir, 0, "--listen="+address)
		return strings.Contains(texts["database"], "last written by "+version())
	})
	p.stop(t, os.Interrupt)
}

func TestTheDoctorNamesAllThatIsBadAndNoSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	foreign, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	slack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ok":false,"error":"invalid_auth"}`))
	}))
	defer slack.Close()
	const secret = "xoxb-very-secret"
	for name, text := range map[string]string{
		"data/switchyard.db":   strings.Repeat("no database ", 1000),
		"bot.toml":             "transport = 'team'\nteam_bot_token = '" + secret + "'\nteam_signing_secret = '" + secret + "'\n",
		"data/session.key":     "x",
		"switchyard.toml":      "bot.team_api_url = '" + slack.URL + "/'\n[login]\nissuer = 'http://127.0.0.1:1'\nclient_id = 'x'\nadmins = ['a@example.org']\n",
		"data/credentials.old": secret,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	states, texts := checkup(t, dir, 1, "--listen="+foreign.Addr().String(), "--config=DIR/switchyard.toml")
	wantChecks(t, states, "addresses", "permissions", "database", "login", "bot", "targets")
	for word, text := range texts {
		if strings.Contains(text, secret) {
			t.Errorf("%s: %s", word, text)
		}
	}
}

func TestTheDoctorLooksAtASharedDatabase(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	states, texts := checkup(t, t.TempDir(), 0, "--listen="+freeAddress(t), "--database="+database)
	wantChecks(t, states)
	if !strings.Contains(texts["database"], "PostgreSQL 1") {
		t.Errorf("database: %s", texts["database"])
	}
	states, texts = checkup(t, t.TempDir(), 1, "--listen="+freeAddress(t), "--database=postgres://me:hidden@127.0.0.1:1/none")
	wantChecks(t, states, "database", "bot", "targets")
	for word, text := range texts {
		if strings.Contains(text, "hidden") {
			t.Errorf("%s: %s", word, text)
		}
	}
}
