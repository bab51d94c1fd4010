// Package receivers_test holds what targets are sent to programs that are not ours, which test-deps.sh installs.
package receivers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/notify"
	"switchyard/internal/waittest"
)

// program returns the path of a program that is needed, or of a file.
func program(t *testing.T, path string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs other programs")
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		waittest.Missing(t, err)
	}
	return path
}

// message has what could become a header, markup or a recipient.
func message() domain.Message {
	const evil = "Größe ‹› @everyone <b>x</b>\r\nBcc: eve@evil.test\u202e 🚂"
	return domain.Message{
		ID: "db_t_7", Type: "story_blocked", At: time.UnixMilli(1_700_000_000_123), Title: "alpha: " + evil,
		Text: "■ alpha · blocked · " + strings.Repeat("a long line ", 120) + evil + "\n.\n..dots", Link: "https://yard.example/projects/alpha",
		Data: json.RawMessage(`{"id":7,"story_name":"Größe \u003cb\u003e 🚂"}`), Signal: domain.SignalStop,
	}
}

const (
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
	former = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
)

// TestStandardWebhooksVerifiesWhatIsSent, by the secret and, for a while, by the former one, but by no other, and not what was
// changed or is old.
func TestStandardWebhooksVerifiesWhatIsSent(t *testing.T) {
	program(t, "node_modules/standardwebhooks")
	type call struct {
		Body    string            `json:"body"`
		Headers map[string]string `json:"headers"`
		Secret  string            `json:"secret"`
	}
	var got call
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = call{string(body), map[string]string{}, secret}
		for name := range r.Header {
			got.Headers[strings.ToLower(name)] = r.Header.Get(name)
		}
	}))
	defer receiver.Close()
	sender := notify.New(notify.Options{Guard: notify.Guard{Loopback: true}})
	defer sender.Close()
	to := domain.Target{ID: "t", URL: domain.Secret(receiver.URL), Secret: secret, Former: former, FormerUntil: time.Now().Add(time.Hour)}
	if sent := sender.Send(t.Context(), to, message()); sent.Err != nil {
		t.Fatal(sent.Err)
	}
	change := func(edit func(c *call)) call {
		c := got
		c.Headers = map[string]string{}
		for name, value := range got.Headers {
			c.Headers[name] = value
		}
		edit(&c)
		return c
	}
	calls := []call{
		got,
		change(func(c *call) { c.Secret = former }),
		change(func(c *call) { c.Secret = "whsec_" + strings.Repeat("A", 43) + "=" }),
		change(func(c *call) { c.Body += " " }),
		change(func(c *call) { c.Headers["webhook-id"] += "1" }),
		change(func(c *call) { c.Headers["webhook-timestamp"] = fmt.Sprint(time.Now().Add(-time.Hour).Unix()) }),
	}
	input, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "verify.js")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if answer := strings.TrimSpace(string(out)); answer != `["story_blocked","story_blocked",null,null,null,null]` {
		t.Errorf("verified: %s", answer)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestAMailServerGetsMailAsItIsMeant: Mailpit accepts it, after a login, and reads in it what was meant.
func TestAMailServerGetsMailAsItIsMeant(t *testing.T) {
	path := program(t, "bin/mailpit")
	smtp, web, passwords := freePort(t), freePort(t), filepath.Join(t.TempDir(), "passwords")
	if err := os.WriteFile(passwords, []byte("yard:pass-word\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), path, "--smtp", smtp, "--listen", web, "--smtp-auth-file", passwords,
		"--smtp-auth-allow-insecure", "--disable-version-check", "--quiet")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	waittest.Until(t, "the mail server listens", func() bool {
		c, err := net.Dial("tcp", smtp)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	ask := func(path string, to any) {
		t.Helper()
		response, err := http.Get("http://" + web + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if err := json.NewDecoder(response.Body).Decode(to); err != nil {
			t.Fatal(err)
		}
	}
	host, port, _ := net.SplitHostPort(smtp)
	number := 0
	_, _ = fmt.Sscan(port, &number)
	to := domain.Target{ID: "t", URL: "mailto:ada@example.org,bob@example.org"}
	mail := notify.Mail{SMTPHost: host, SMTPPort: number, SMTPFrom: "Yard <yard@example.org>", SMTPUsername: "yard", SMTPPassword: "pass-word", SMTPTLS: "none"}
	if sent := notify.New(notify.Options{Mail: mail}).Send(t.Context(), to, message()); sent.Err != nil {
		t.Fatal(sent.Err)
	}
	var list struct {
		Messages []struct{ ID string }
	}
	ask("/api/v1/messages", &list)
	if len(list.Messages) != 1 {
		t.Fatalf("%d messages", len(list.Messages))
	}
	type person struct{ Name, Address string }
	var got struct {
		MessageID, Subject, Text, HTML string
		From                           person
		To, Cc, Bcc                    []person
	}
	ask("/api/v1/message/"+list.Messages[0].ID, &got)
	if got.From != (person{"Yard", "yard@example.org"}) || len(got.To)+len(got.Cc)+len(got.Bcc) != 2 || got.HTML != "" || got.MessageID != "db_t_7@switchyard" {
		t.Errorf("%+v", got)
	}
	if strings.ContainsAny(got.Subject, "\r\n\u202e") || !strings.HasPrefix(got.Subject, "alpha: Größe ‹› @everyone <b>x</b> Bcc: eve@evil.test") {
		t.Errorf("subject %q", got.Subject)
	}
	for _, part := range []string{"■ alpha · blocked", "Größe ‹›", "🚂", "..dots", "https://yard.example/projects/alpha"} {
		if !strings.Contains(got.Text, part) {
			t.Errorf("the text lacks %q: %q", part, got.Text)
		}
	}
	mail.SMTPPassword = "wrong"
	if sent := notify.New(notify.Options{Mail: mail}).Send(t.Context(), to, message()); sent.Err == nil || sent.Status != 535 {
		t.Errorf("a wrong password: %+v", sent)
	}
}
