package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"switchyard/internal/pgtest"
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
	if !strings.Contains(texts["database"], "last written by "+version()) {
		t.Errorf("database: %s", texts["database"])
	}
	p.stop(t, os.Interrupt)
}

func TestTheDoctorChecksWhatItCanDespiteAMistakeInTheConfiguration(t *testing.T) {
	t.Parallel()
	const secret = "postgres://me:hidden@db.example/x"
	tests := map[string]struct {
		file string
		args []string
		bad  []string
		says string // of the addresses
	}{
		"of a setting that no check needs": {file: "gateway.poll_interval = 'soon'", bad: []string{"addresses"}, says: ":1: "},
		"of a flag":                        {args: []string{"--tool-timeout=x"}, bad: []string{"addresses"}, says: "--tool-timeout"},
		"of a setting of some checks": {
			file: "gateway.data = ''", bad: []string{"addresses", "clock", "disk", "permissions", "database", "bot", "targets"},
			says: "gateway.data",
		},
		"of a secret's file": {
			file: "gateway.admin_token_file = '/none'", bad: []string{"addresses", "login"}, says: "/none",
		},
		"of the login":      {file: "login.issuer = 'https://id.example'", bad: []string{"addresses", "login"}, says: "login.client_id"},
		"of a notification": {file: "notifications.smtp_port = 0", bad: []string{"addresses", "targets"}, says: "smtp_port"},
		"an open address": {
			args: []string{"--listen=0.0.0.0:3000"}, bad: []string{"addresses"}, says: "can be reached from other machines",
		},
		"syntax": {
			file: "gateway.database = '" + secret,
			bad:  []string{"addresses", "clock", "disk", "permissions", "database", "login", "bot", "targets"}, says: "switchyard.toml:1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "switchyard.toml"), []byte(test.file), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"--listen=" + freeAddress(t), "--config=DIR/switchyard.toml"}, test.args...)
			if strings.HasPrefix(test.file, "gateway.data ") {
				args = append(args, "--data=") // a flag is stronger than the file
			}
			states, texts := checkup(t, dir, 1, args...)
			wantChecks(t, states, test.bad...)
			if !strings.Contains(texts["addresses"], test.says) {
				t.Errorf("addresses: %s", texts["addresses"])
			}
			for word, text := range texts {
				if strings.Contains(text, "hidden") {
					t.Errorf("%s: %s", word, text)
				}
			}
		})
	}
}

func TestTheDoctorNamesATargetThatAcceptsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, switchyard(t, dir, "gateway", "--data=DIR/data", "--bot-config=DIR/bot.toml", "--listen=127.0.0.1:0"))
	refuses := httptest.NewServer(http.NotFoundHandler())
	defer refuses.Close()
	status, text := p.do(t, http.MethodPost, "/api/gateway/targets",
		`{"name":"Night shift","url":"ntfy://`+strings.TrimPrefix(refuses.URL, "http://")+`/topic?scheme=http"}`)
	if status != http.StatusOK && status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	address := freeAddress(t)
	_, texts := checkup(t, dir, 0, "--listen="+address)
	if texts["targets"] != "1 set up" {
		t.Errorf("targets: %s", texts["targets"])
	}
	var target struct{ ID string }
	if err := json.Unmarshal([]byte(text), &target); err != nil {
		t.Fatal(err)
	}
	if status, text := p.do(t, http.MethodPost, "/api/gateway/targets/"+target.ID+"/test", ""); status != http.StatusBadGateway {
		t.Fatalf("%d %s", status, text)
	}
	states, texts := checkup(t, dir, 1, "--listen="+address)
	wantChecks(t, states, "targets")
	if !strings.Contains(texts["targets"], "Night shift") {
		t.Errorf("targets: %s", texts["targets"])
	}
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

// TestTheDoctorLooksAtTheInstalledService: for root, where nothing else names a data directory, with systemd or without.
func TestTheDoctorLooksAtTheInstalledService(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	unit := filepath.Join(root, "usr/lib/systemd/system/switchyard.service")
	if err := os.MkdirAll(filepath.Dir(unit), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(unit, []byte(contrib(t, "contrib/switchyard.service")), 0o644); err != nil {
		t.Fatal(err)
	}
	none := func(string) string { return "" }
	if got := asService(none, root)("SWITCHYARD_DATA"); got != "/var/lib/switchyard" {
		t.Errorf("the data directory is %q", got)
	}
	if got := asService(none, root)("XDG_CONFIG_HOME"); got != "/etc" {
		t.Errorf("the configuration is below %q", got)
	}
	if got := asService(none, t.TempDir())("SWITCHYARD_DATA"); got != "" {
		t.Errorf("without a service: %q", got)
	}
	own := func(key string) string { return map[string]string{"SWITCHYARD_DATA": "/srv"}[key] }
	if got := asService(own, root)("SWITCHYARD_BOT_CONFIG"); got != "" {
		t.Errorf("another gateway gets the service's %q", got)
	}
}

// TestTheDoctorSaysWhoMayReadTheService: somebody who may not read its data and has no gateway of their own.
func TestTheDoctorSaysWhoMayReadTheService(t *testing.T) {
	t.Parallel()
	root, home := t.TempDir(), t.TempDir()
	unit, data := filepath.Join(root, "etc/systemd/system/switchyard.service"), filepath.Join(root, "data")
	if err := os.MkdirAll(filepath.Dir(unit), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{unit: "Environment=SWITCHYARD_DATA=" + data + "\n", data: "no directory: root may read everything"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	environment := func(key string) string {
		return map[string]string{"HOME": home, "XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home}[key]
	}
	asks := func(user int, args ...string) (string, error) {
		flags := doctorCommand().Flags()
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		of, err := doctorEnvironment(flags, environment, root, user)
		if err != nil {
			return "", err
		}
		return of("SWITCHYARD_DATA"), nil
	}
	if _, err := asks(1000); err == nil || !strings.Contains(err.Error(), data) || !strings.Contains(err.Error(), "use sudo, or --data") {
		t.Errorf("somebody: %v", err)
	}
	if got, err := asks(0); got != data || err != nil {
		t.Errorf("root: %q, %v", got, err)
	}
	if got, err := asks(1000, "--data="+home); got != "" || err != nil {
		t.Errorf("with --data: %q, %v", got, err)
	}
	if err := os.Mkdir(filepath.Join(home, "switchyard"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := asks(1000); got != "" || err != nil {
		t.Errorf("with a gateway of their own: %q, %v", got, err)
	}
}
