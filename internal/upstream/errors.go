package upstream

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"switchyard/internal/domain"
)

var errTooLarge = domain.Errorf(domain.BadGateway, "answer is too large: over %d MiB", maxAnswer>>20)

// statusError says what a status other than 200 means.
func statusError(response *http.Response) error {
	status := response.StatusCode
	switch {
	case status >= 300 && status < 400 && status != http.StatusNotModified:
		return domain.Errorf(domain.BadGateway, "redirects, which is not followed (HTTP status %d)", status)
	case status == http.StatusUnauthorized:
		return domain.Errorf(domain.BadGateway, "refuses the token, or wants one (HTTP status 401)")
	case status == http.StatusNotFound:
		return domain.Errorf(domain.BadGateway, "is no project server (HTTP status 404)")
	}
	return domain.Errorf(domain.BadGateway, "answers with HTTP status %d", status)
}

// explain gives a failed call its message for people and keeps the cause for the log. A yard error stays as it is.
func explain(err error, timedOut bool, timeout time.Duration) error {
	var known *domain.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	message := reason(err)
	if timedOut {
		message = fmt.Sprintf("timed out: no whole answer within %v", timeout)
	}
	return domain.WrapError(domain.BadGateway, err, message)
}

// networkReasons are the operating system's errors in words.
var networkReasons = map[syscall.Errno]string{
	syscall.ECONNREFUSED: "connection refused",
	syscall.ECONNRESET:   "connection reset",
	syscall.EPIPE:        "connection reset",
	syscall.EHOSTUNREACH: "no route to host",
	syscall.ENETUNREACH:  "network is unreachable",
	syscall.ETIMEDOUT:    "timed out",
	syscall.EMFILE:       "this gateway has too many open files",
	syscall.ENFILE:       "this machine has too many open files",
}

// protocolReasons are by what net/http says, which has no types for these.
var protocolReasons = []struct{ text, reason string }{
	{"server gave HTTP response to HTTPS client", "speaks http, not https"},
	{"malformed HTTP", "does not speak HTTP"},
	{"readLoopPeekFailLocked", "does not speak HTTP"}, // it spoke before it was asked
	{"server response headers exceeded", "answer's header is too large"},
	{"malformed chunked encoding", "answer is damaged"},
	{"invalid byte in chunk length", "answer is damaged"},
}

func reason(err error) string {
	var address addressError
	var number syscall.Errno
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError
	var damaged flate.CorruptInputError
	switch {
	case errors.As(err, &address):
		return address.Error()
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns):
		return "host name could not be looked up"
	case errors.As(err, &number) && networkReasons[number] != "":
		return networkReasons[number]
	case errors.Is(err, context.DeadlineExceeded):
		return "timed out"
	case errors.As(err, &certificate):
		return "certificate is not trusted"
	case errors.As(err, &notTLS):
		return "does not speak https"
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &damaged):
		return "answer is damaged"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed before the answer was complete"
	}
	for _, p := range protocolReasons {
		if strings.Contains(err.Error(), p.text) {
			return p.reason
		}
	}
	return "request failed"
}
