package bot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/neterr"
	"switchyard/internal/supervise"
)

const (
	// CallLimit is the time limit of a call to a chat server, which includes a homeserver's calls to others.
	CallLimit = 60 * time.Second
	// maxAnswer is the largest answer of a chat server, in bytes. Syncs of many rooms are the largest.
	maxAnswer = 16 << 20
	// minRetry is the shortest pause after a rate limit, whatever the answer says.
	minRetry = 500 * time.Millisecond
	// stopGrace is how long a call that writes may continue after the bot was stopped.
	stopGrace = 5 * time.Second
)

// WaitOut repeats a call for as long as it is refused with a rate limit. limit returns the pause that the refusal
// names, false for any other result.
func WaitOut(ctx context.Context, call func() error, limit func(error) (time.Duration, bool)) error {
	for {
		err := call()
		pause, limited := limit(err)
		if !limited {
			return err
		}
		if !supervise.Sleep(ctx, max(minRetry, pause)) {
			return ctx.Err()
		}
	}
}

// Finish makes a call that writes. The end of ctx does not abort it at once, since it would be unknown whether the chat
// server has acted on it. A deadline of ctx still applies.
func Finish(ctx context.Context, call func(context.Context) error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	inner, cancel := context.WithTimeout(context.WithoutCancel(ctx), CallLimit)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			supervise.Sleep(inner, stopGrace)
		}
		cancel()
	})()
	return call(inner)
}

// NewHTTPClient returns a client for a chat server. It follows no redirects, which would send secrets elsewhere.
func NewHTTPClient(o Options) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if o.Dial != nil {
		transport.DialContext = o.Dial
	}
	return &http.Client{
		Transport:     limited{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// limited fails when an answer has more than maxAnswer bytes.
type limited struct{ http.RoundTripper }

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	}
	return response, err
}

// Unreachable explains why there was no answer.
func Unreachable(err error, host string) error {
	return domain.WrapError(domain.BadGateway, err, fmt.Sprintf(
		"No answer from %s: %s. Check the address; the bot keeps trying.", host, neterr.Describe(err, 0)))
}

// PlainText answers a request of a chat server with a text.
func PlainText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // the chat server may be gone
}
