package notify_test

import (
	"bufio"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http/httptest"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/notify"
)

// sink is a mail server that keeps what it gets.
type sink struct {
	net.Listener
	mu       sync.Mutex
	commands []string
	messages []string
	refuses  string // the answer to RCPT, "" to accept
	farewell string // the answer to QUIT
	greeting []byte
	ended    sync.WaitGroup
}

func newSink(t *testing.T) *sink {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newSinkOn(t, l)
}

func newSinkOn(t *testing.T, l net.Listener) *sink {
	s := &sink{Listener: l, farewell: "221 bye\r\n", greeting: []byte("220 sink ESMTP\r\n")}
	s.ended.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.ended.Go(func() { defer c.Close(); s.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); s.ended.Wait() })
	return s
}

func (s *sink) serve(c net.Conn) {
	lines := bufio.NewScanner(c)
	s.mu.Lock()
	greeting := s.greeting
	s.mu.Unlock()
	_, _ = c.Write(greeting)
	for lines.Scan() {
		line := lines.Text()
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		s.mu.Lock()
		s.commands = append(s.commands, line)
		refuses, farewell := s.refuses, s.farewell
		s.mu.Unlock()
		switch {
		case verb == "EHLO":
			fmt.Fprint(c, "250-sink\r\n250-AUTH PLAIN\r\n250 8BITMIME\r\n")
		case verb == "AUTH":
			fmt.Fprint(c, "235 welcome\r\n")
		case verb == "RCPT" && refuses != "":
			fmt.Fprint(c, refuses+"\r\n")
		case verb == "QUIT":
			fmt.Fprint(c, farewell)
			return
		case verb == "DATA":
			fmt.Fprint(c, "354 go on\r\n")
			var text strings.Builder
			for lines.Scan() && lines.Text() != "." {
				text.WriteString(lines.Text() + "\r\n")
			}
			s.mu.Lock()
			s.messages = append(s.messages, text.String())
			s.mu.Unlock()
			fmt.Fprint(c, "250 kept\r\n")
		default:
			fmt.Fprint(c, "250 ok\r\n")
		}
	}
}

func (s *sink) sender() *notify.Sender {
	to := s.Addr().(*net.TCPAddr)
	return notify.New(notify.Options{Mail: notify.Mail{
		SMTPHost: "127.0.0.1", SMTPPort: to.Port, SMTPFrom: "Yard <yard@example.org>", SMTPUsername: "me", SMTPPassword: "pass word", SMTPTLS: "none",
	}})
}

// TestMailArrivesAsItIsMeant: no text adds a header or a recipient, and the id is the same at each attempt.
func TestMailArrivesAsItIsMeant(t *testing.T) {
	s := newSink(t)
	for range 2 {
		if sent := s.sender().Send(t.Context(), target("mailto:a@example.org,b@example.org"), message()); sent.Err != nil || sent.Status != 250 {
			t.Fatalf("%+v", sent)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	got, err := mail.ReadMessage(strings.NewReader(s.messages[0]))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(got.Header.Get("Subject"))
	if err != nil || !strings.HasPrefix(subject, "alpha: @everyone") || got.Header.Get("Bcc") != "" || got.Header.Get("From") != `"Yard" <yard@example.org>` ||
		got.Header.Get("Message-Id") != "<db_t_7@switchyard>" || !strings.HasPrefix(got.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%+v, %v", got.Header, err)
	}
	again, err := mail.ReadMessage(strings.NewReader(s.messages[1]))
	if err != nil || again.Header.Get("Message-Id") != got.Header.Get("Message-Id") {
		t.Errorf("%+v, %v", again.Header, err)
	}
	recipients := 0
	for _, command := range s.commands {
		if strings.HasPrefix(command, "RCPT") {
			recipients++
		}
	}
	if recipients != 4 {
		t.Errorf("%q", s.commands)
	}
}

func TestWhyMailFails(t *testing.T) {
	s := newSink(t)
	s.refuses = "550 no such user"
	sent := s.sender().Send(t.Context(), target("mailto:a@example.org"), message())
	if sent.Status != 550 || !strings.Contains(domain.MessageOf(sent.Err), "no such user") || strings.Contains(domain.MessageOf(sent.Err), "pass word") || sent.Refused() {
		t.Errorf("%+v", sent)
	}
	s.Close()
	if sent := s.sender().Send(t.Context(), target("mailto:a@example.org"), message()); sent.Err == nil || sent.Status != 0 || !strings.Contains(domain.MessageOf(sent.Err), "mail server: ") {
		t.Errorf("%+v", sent)
	}
	secure := notify.New(notify.Options{Mail: notify.Mail{SMTPHost: "127.0.0.1", SMTPPort: newSink(t).Addr().(*net.TCPAddr).Port, SMTPFrom: "y@example.org", SMTPTLS: "starttls"}})
	if sent := secure.Send(t.Context(), target("mailto:a@example.org"), message()); sent.Err == nil {
		t.Error("mail is sent without TLS")
	}
	none := notify.New(notify.Options{})
	if sent := none.Send(t.Context(), target("mailto:a@example.org"), message()); !strings.Contains(domain.MessageOf(sent.Err), "notifications.smtp_host") {
		t.Errorf("%+v", sent)
	}
}

// TestAcceptedMailIsSent, also where the server leaves without a proper word: sent again, it would come twice.
func TestAcceptedMailIsSent(t *testing.T) {
	for _, farewell := range []string{"", "221\r\n", "421 closing\r\n"} {
		s := newSink(t)
		s.mu.Lock()
		s.farewell = farewell
		s.mu.Unlock()
		if sent := s.sender().Send(t.Context(), target("mailto:a@example.org"), message()); sent.Err != nil || sent.Status != 250 {
			t.Errorf("%q: %+v", farewell, sent)
		}
	}
}

// TestAnEndlessMailServerIsLeft before its answer takes memory.
func TestAnEndlessMailServerIsLeft(t *testing.T) {
	for _, greeting := range []string{strings.Repeat("220-more\r\n", 4<<20), "220 " + strings.Repeat("x", 32<<20)} {
		s := newSink(t)
		s.mu.Lock()
		s.greeting = []byte(greeting)
		s.mu.Unlock()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		sent := s.sender().Send(t.Context(), target("mailto:a@example.org"), message())
		runtime.ReadMemStats(&after)
		if taken := (after.TotalAlloc - before.TotalAlloc) >> 20; sent.Err == nil || taken > 4 {
			t.Errorf("%.9q…: it took %d MiB, %v", greeting, taken, sent.Err)
		}
	}
}

// TestMailGoesOverTLSFromItsStart, with a password. A process of its own trusts the server's certificate.
func TestMailGoesOverTLSFromItsStart(t *testing.T) {
	const variable = "TEST_MAIL_PORT"
	if port, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		sender := notify.New(notify.Options{Mail: notify.Mail{
			SMTPHost: "127.0.0.1", SMTPPort: port, SMTPFrom: "yard@example.org", SMTPUsername: "me", SMTPPassword: "pass", SMTPTLS: "implicit",
		}})
		if sent := sender.Send(t.Context(), target("mailto:a@example.org"), message()); sent.Err != nil {
			t.Error(sent.Err)
		}
		return
	}
	trusted := httptest.NewTLSServer(nil)
	defer trusted.Close()
	file := filepath.Join(t.TempDir(), "certificate.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted.Certificate().Raw})
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: trusted.TLS.Certificates})
	if err := errors.Join(err, os.WriteFile(file, block, 0o600)); err != nil {
		t.Fatal(err)
	}
	s := newSinkOn(t, l)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+file, fmt.Sprint(variable, "=", l.Addr().(*net.TCPAddr).Port))
	out, err := cmd.CombinedOutput()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || len(s.messages) != 1 || !slices.ContainsFunc(s.commands, func(c string) bool { return strings.HasPrefix(c, "AUTH PLAIN") }) {
		t.Errorf("%v: %s%q", err, out, s.commands)
	}
}
