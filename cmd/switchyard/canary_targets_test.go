package main

import (
	"bufio"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mailServer refuses logins, with what it was sent, and returns its port.
func mailServer(t *testing.T) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "220 mail.example\r\n")
			for lines := bufio.NewScanner(c); lines.Scan(); {
				switch verb, rest, _ := strings.Cut(lines.Text(), " "); verb {
				case "EHLO":
					fmt.Fprint(c, "250-mail.example\r\n250 AUTH PLAIN\r\n")
				case "QUIT":
					fmt.Fprint(c, "221 bye\r\n")
				default:
					fmt.Fprintf(c, "535 no: %s\r\n", rest)
				}
			}
			c.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// TestNoSecretOfATargetIsShown: targets of every kind are added, changed, tried, refused and removed, by the API and by forms. What is
// secret of them is in no answer, page, log of any level, entry of the audit, nor in what the doctor says. Receivers answer with what
// they were sent.
func TestNoSecretOfATargetIsShown(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "no: %s %v %s", r.URL, r.Header, body)
	}))
	defer receiver.Close()
	host := strings.TrimPrefix(receiver.URL, "http://")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "smtp"), []byte("canary-smtp\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mail := []string{
		"SWITCHYARD_NOTIFICATIONS_ALLOW_PRIVATE=true",
		"SWITCHYARD_NOTIFICATIONS_SMTP_HOST=127.0.0.1", "SWITCHYARD_NOTIFICATIONS_SMTP_PORT=" + mailServer(t),
		"SWITCHYARD_NOTIFICATIONS_SMTP_FROM=yard@example.org", "SWITCHYARD_NOTIFICATIONS_SMTP_USERNAME=yard",
		"SWITCHYARD_NOTIFICATIONS_SMTP_PASSWORD_FILE=" + filepath.Join(dir, "smtp"), "SWITCHYARD_NOTIFICATIONS_SMTP_TLS=none",
	}
	cmd := switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data", "--bot-config=DIR/bot.toml", "--log-level=debug")
	cmd.Env = append(cmd.Env, mail...)
	p := start(t, cmd)
	shown := map[string]string{} // what was said, by what was asked
	say := func(want int, method, path, body string) string {
		t.Helper()
		status, text := p.do(t, method, path, body)
		if status != want {
			t.Errorf("%s %s %s: %d %s, want %d", method, path, body, status, text, want)
		}
		shown[method+" "+path+" "+body] = text
		return text
	}
	secrets := []string{"canary", base64.StdEncoding.EncodeToString([]byte("\x00yard\x00canary-smtp"))}
	// Of services whose host is fixed none is called.
	for _, kind := range []struct {
		address string
		called  bool
	}{
		{"http://canary-user:canary-password@" + host + "/canary-path?key=canary-key", true},
		{"ntfy://me:canary-password@" + host + "/canary-topic?scheme=http", true},
		{"gotify://" + host + "/canary-token?disabletls=yes", true},
		{"mattermost://" + host + "/canary-key?disabletls=yes", true},
		{"mailto:audit@example.org", true},
		{"discord://canary-token@123", false},
		{"slack://hook:canaryA-canaryB-canaryC@webhook", false},
		{"telegram://12:canary-token@telegram?chats=canary-chat", false},
		{"pushover://shoutrrr:canary-token@canary-user/", false},
	} {
		scheme, rest, _ := strings.Cut(kind.address, ":")
		status, made := p.do(t, "POST", "/api/gateway/targets", `{"name":"`+scheme+`","url":"`+kind.address+`","enabled":false}`)
		var target struct{ ID, URL, Secret string }
		if err := json.Unmarshal([]byte(made), &target); err != nil || status != http.StatusCreated || target.ID == "" {
			t.Fatalf("%s: %d %s", kind.address, status, made)
		}
		shown["the url of "+scheme] = target.URL
		path := "/api/gateway/targets/" + target.ID
		if target.Secret != "" {
			_, rotated := p.do(t, "POST", path+"/secret", "")
			var second struct{ Secret string }
			_ = json.Unmarshal([]byte(rotated), &second)
			secrets = append(secrets, target.Secret, second.Secret)
		}
		say(400, "POST", "/api/gateway/targets", `{"name":"bad","url":"`+scheme+`:canary `+rest+`"}`)
		say(200, "PUT", path, `{"name":"other `+scheme+`","enabled":false,"alerts":["blocked"]}`)
		if kind.called {
			say(502, "POST", path+"/test", "")
		}
		say(200, "GET", path+"/deliveries", "")
		say(200, "GET", "/notifications?edit="+target.ID, "")
		say(200, "GET", "/notifications?log="+target.ID, "")
	}
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, auth := base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes()), base64.RawURLEncoding.EncodeToString([]byte("sixteen bytes ok"))
	secrets = append(secrets, point, auth)
	device := say(201, "POST", "/api/gateway/push", `{"endpoint":"https://`+host+`/canary-endpoint","keys":{"p256dh":"`+point+`","auth":"`+auth+`"},"alerts":["question"]}`)
	var pushed struct{ ID string }
	_ = json.Unmarshal([]byte(device), &pushed)
	say(400, "POST", "/api/gateway/push", `{"endpoint":"ftp://canary-endpoint","keys":{"p256dh":"canary","auth":"canary"}}`)
	for _, path := range []string{
		"/notifications", "/audit", "/api/gateway/audit?limit=200", "/api/gateway/targets", "/api/gateway/attention", "/metrics", "/api/gateway/push", "/",
	} {
		say(200, "GET", path, "")
	}
	doctor := switchyard(t, dir, "doctor", "--data=DIR/data", "--bot-config=DIR/bot.toml", "--listen="+freeAddress(t))
	doctor.Env = append(doctor.Env, mail...)
	said, _ := doctor.CombinedOutput()
	shown["the doctor"] = string(said)
	if !strings.Contains(shown["the doctor"], "targets") {
		t.Errorf("the doctor: %s", said)
	}
	say(204, "DELETE", "/api/gateway/push/"+pushed.ID, "")
	if status, _ := p.stop(t, syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	shown["the log"] = p.stderr.String()
	for asked, text := range shown {
		for _, secret := range secrets {
			if secret == "" || strings.Contains(text, secret) {
				t.Errorf("%q shows %q:\n%.2000s", asked, secret, text)
			}
		}
	}
}
