package notify_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/notify"
)

// received is a request that a fake receiver got.
type received struct {
	host, path string
	header     http.Header
	body       string
}

// field returns a field of a JSON body.
func (r received) field(name string) any {
	var fields map[string]any
	if json.Unmarshal([]byte(r.body), &fields) != nil {
		return nil
	}
	return fields[name]
}

// receiver is a server that answers for every host.
type receiver struct {
	*notify.Sender
	mu     sync.Mutex
	got    []received
	answer http.HandlerFunc
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	r.got = append(r.got, received{request.Host, request.URL.RequestURI(), request.Header, string(body)})
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		answer(w, request)
	}
}

func (r *receiver) last(t *testing.T) received {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.got) == 0 {
		t.Fatal("nothing was received")
	}
	return r.got[len(r.got)-1]
}

// certificate returns one for all hosts of the tests.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{"discord.com", "hooks.slack.com", "api.telegram.org", "api.pushover.net", "*.example"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// newReceiver returns a receiver, and a sender whose connections all lead to it, with TLS but for ports 80 and 8080.
func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	r := &receiver{answer: answer}
	secure, plain := httptest.NewUnstartedServer(r), httptest.NewServer(r)
	own, roots := certificate(t)
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{own}}
	secure.StartTLS()
	r.Sender = notify.New(notify.Options{
		Guard: notify.Guard{Private: true, Loopback: true}, Roots: roots, Version: "test", Push: notify.Push{Keys: notify.SomeKeys},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			to := secure.Listener.Addr().String()
			if strings.HasSuffix(address, ":80") || strings.HasSuffix(address, ":8080") {
				to = plain.Listener.Addr().String()
			}
			return (&net.Dialer{}).DialContext(ctx, network, to)
		},
	})
	t.Cleanup(func() { r.Close(); secure.CloseClientConnections(); secure.Close(); plain.Close() })
	return r
}

func target(url string) domain.Target {
	return domain.Target{ID: "t", URL: domain.Secret(url), Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
}

var evil = "@everyone <!channel> *bold* [link](https://evil.test) `x` <b>x</b>\r\nBcc: a@evil.test\u202e #tag :smile: /start"

func message() domain.Message {
	return domain.Message{
		ID: "db_t_7", Type: "story_blocked", At: time.UnixMilli(1_700_000_000_123), Title: "alpha: " + evil,
		Text: "■ alpha · blocked · 7_pay · " + evil, Link: "https://yard.example/projects/alpha", Signal: domain.SignalStop,
		Data: json.RawMessage(`{"id":7,"story_name":"<b>"}`),
	}
}
