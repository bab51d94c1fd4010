package bot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/neterr"
	"switchyard/internal/supervise"
)

// maxAnswer is the largest answer of a chat server, in bytes. Syncs of many rooms are the largest.
const maxAnswer = 16 << 20

// callLimit is the time limit of a call to a chat server, which includes a homeserver's calls to others.
const callLimit = 60 * time.Second

// minRetry is the shortest pause after a rate limit, whatever the answer says.
const minRetry = 500 * time.Millisecond

// stopGrace is how long a call that writes may continue after the bot was stopped.
const stopGrace = 5 * time.Second

// finish makes a call that writes. The end of ctx does not abort it at once, since it would be unknown whether the chat
// server has acted on it. A deadline of ctx still applies.
func finish(ctx context.Context, call func(context.Context) error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	inner, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			supervise.Sleep(inner, stopGrace)
		}
		cancel()
	})()
	return call(inner)
}

// newHTTPClient returns the client for a chat server. It follows no redirects, which would send secrets elsewhere.
func newHTTPClient() *http.Client {
	return &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
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

// unreachable explains why there was no answer.
func unreachable(err error, host string) error {
	return domain.WrapError(domain.BadGateway, err, fmt.Sprintf(
		"No answer from %s: %s. Check the address; the bot keeps trying.", host, neterr.Describe(err, 0)))
}
