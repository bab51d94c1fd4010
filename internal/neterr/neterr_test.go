package neterr_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/neterr"
)

func TestErrorsReadAsPlainWords(t *testing.T) {
	for want, err := range map[string]error{
		"no such host":                            &net.OpError{Op: "dial", Err: &net.DNSError{Name: "secret.test", IsNotFound: true}},
		"host name could not be looked up":        &net.DNSError{Err: "server misbehaving"},
		"connection refused":                      &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"proxy: connection refused":               &net.OpError{Op: "proxyconnect", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}},
		"connection reset":                        syscall.EPIPE,
		"this process has too many open files":    &net.OpError{Op: "dial", Err: syscall.EMFILE},
		"timed out: no complete answer within 2s": fmt.Errorf("read: %w", context.DeadlineExceeded),
		"canceled": context.Canceled,
		"connection closed before the answer was complete": io.ErrUnexpectedEOF,
		"request failed": fmt.Errorf("key=secret"),
	} {
		wrapped := &url.Error{Op: "Get", URL: "https://host.test/?key=secret", Err: err}
		if got := neterr.Describe(wrapped, 2*time.Second); got != want {
			t.Errorf("%v is described as %q, want %q", err, got, want)
		}
	}
	if got := neterr.Describe(syscall.ETIMEDOUT, 0); got != "timed out" {
		t.Errorf("a time-out without a limit is %q", got)
	}
}

// TestWhatFewPeopleKnowIsSaidInPlainWords: what is wrong and what to do about it, for all of these alone.
func TestWhatFewPeopleKnowIsSaidInPlainWords(t *testing.T) {
	for description, want := range map[string]string{
		"connection refused":                               "Nothing is running at its address. Start its project server,",
		"timed out: no complete answer within 2s":          "It takes too long to answer.",
		"connection reset":                                 "broke off",
		"connection closed before the answer was complete": "broke off",
		"no route to host":                                 "Correct its address",
		"does not speak HTTP":                              "Something other than a project server",
		"is not a project server (HTTP status 404)":        "Something other than a project server",
		"refuses the token, or needs one":                  "Enter the token",
	} {
		if got := neterr.Plain(description); !strings.Contains(got, want) {
			t.Errorf("%s: %q", description, got)
		}
	}
	if got := neterr.Plain("answer is not a pipeline"); got != "" {
		t.Error(got)
	}
}

func TestCertificatesAndProtocolsAreToldApart(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	trusting := secure.Client()
	for _, c := range []struct {
		client        *http.Client
		address, want string
	}{
		{&http.Client{Transport: &http.Transport{}}, secure.URL, "certificate is not trusted"},
		{trusting, strings.Replace(secure.URL, "127.0.0.1", "localhost", 1), "certificate is for another host"},
		{trusting, strings.Replace(plain.URL, "http:", "https:", 1), "speaks http, not https"},
		{trusting, "ftp://127.0.0.1/", "unsupported protocol"},
	} {
		response, err := c.client.Get(c.address)
		if err == nil {
			response.Body.Close()
			t.Errorf("%s: no error", c.address)
		} else if got := neterr.Describe(err, 0); got != c.want {
			t.Errorf("%s: %q, want %q (%v)", c.address, got, c.want, err)
		}
	}
}
