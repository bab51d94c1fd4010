// Package neterr has what calls of other servers share: their client, and the words for their errors, which never quote
// an address, since its query may hold a secret.
package neterr

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

const speaksHTTP = "speaks http, not https"

// NotHTTP describes an answer that is something other than HTTP.
const NotHTTP = "does not speak HTTP"

// Describe describes the error of a call with the time limit limit in a few words for people, in lower case and without
// a full stop, as in "unreachable: …". If limit is 0, a timeout does not mention it.
func Describe(err error, limit time.Duration) string {
	if proxy, ok := errors.AsType[*net.OpError](err); ok && proxy.Op == "proxyconnect" {
		return "proxy: " + Describe(proxy.Err, limit)
	}
	var timeout net.Error
	var lookup *net.DNSError
	var number syscall.Errno
	var plain tls.RecordHeaderError
	var corrupt flate.CorruptInputError
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "no such host"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		if limit > 0 {
			return fmt.Sprintf("timed out: no complete answer within %v", limit)
		}
		return "timed out"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case lookup != nil:
		return "host name could not be looked up"
	case errors.As(err, &number) && systemErrors[number] != "":
		return systemErrors[number]
	case errors.As(err, &plain) && string(plain.RecordHeader[:]) == "HTTP/":
		return speaksHTTP
	case errors.As(err, &plain):
		return "does not speak https"
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return "answer is damaged"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed before the answer was complete"
	}
	if text := describeCertificate(err); text != "" {
		return text
	}
	for _, known := range protocolErrors {
		if strings.Contains(err.Error(), known.text) {
			return known.message
		}
	}
	return "request failed"
}

// describeCertificate returns "" for an error that has nothing to do with the server's certificate.
func describeCertificate(err error) string {
	var failed *tls.CertificateVerificationError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case !errors.As(err, &failed):
		return ""
	case errors.As(err, &host):
		return "certificate is for another host"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "certificate has expired or is not valid yet"
	}
	return "certificate is not trusted"
}

var systemErrors = map[syscall.Errno]string{
	syscall.ECONNREFUSED: "connection refused",
	syscall.ECONNRESET:   "connection reset",
	syscall.EPIPE:        "connection reset",
	syscall.EHOSTUNREACH: "no route to host",
	syscall.ENETUNREACH:  "network is unreachable",
	syscall.EMFILE:       "this process has too many open files",
	syscall.ENFILE:       "this machine has too many open files",
}

// protocolErrors are recognised by their text: net/http has no types for them.
var protocolErrors = []struct{ text, message string }{
	{"server gave HTTP response to HTTPS client", speaksHTTP}, // from http.Client; its transport returns a TLS error
	{"malformed HTTP", NotHTTP},
	{"readLoopPeekFailLocked", NotHTTP}, // the server sent data before the request
	{"server response headers exceeded", "answer's header is too large"},
	{"malformed chunked encoding", "answer is damaged"},
	{"invalid byte in chunk length", "answer is damaged"},
	{"unsupported protocol scheme", "unsupported protocol"},
}

// plain are sentences for people who do not know what Describe's words mean, by the beginnings of those.
var plain = []struct{ text, sentences string }{
	{"connection refused", "Nothing is running at its address. Start its project server, or correct the address."},
	{"timed out", "It takes too long to answer. See whether its project server is running, and what it is busy with."},
	{"no such host", "There is no host of that name. Correct its address."},
	{"host name could not", "Its host could not be looked up. Look at the network and the DNS settings of the gateway."},
	{"no route to host", noRoute},
	{"network is unreachable", noRoute},
	{"connection ", "Its connection broke off before the answer was complete. See what its project server’s log says."},
	{speaksHTTP, "It takes no encrypted connections. Begin its address with http://, or set up a certificate there."},
	{"does not speak https", "It takes no encrypted connections. Correct the port in its address."},
	{NotHTTP, wrongServer},
	{"is not a project server", wrongServer},
	{"refuses the token", "It refuses the token, or needs one. Enter the token that its project server was started with."},
}

const wrongServer = "Something other than a project server is running at its address. Correct the port."

const noRoute = "The gateway’s network does not lead there. Correct its address, or look at the network."

// Plain says what is wrong with a project server that cannot be reached, and what to do about it, for a description by
// Describe or package upstream. It returns "" for any other text.
func Plain(description string) string {
	for _, p := range plain {
		if strings.HasPrefix(description, p.text) {
			return p.sentences
		}
	}
	return ""
}
