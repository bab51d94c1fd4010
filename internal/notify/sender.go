package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/upstream"
)

const (
	// attemptLimit is how long an attempt to send a message may take.
	attemptLimit = 10 * time.Second
	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 64 << 10
	// maxExcerpt is how much of an answer a log shows, in characters.
	maxExcerpt = 200
)

// Options are what a Sender is made from.
type Options struct {
	Guard   Guard
	Mail    Mail
	Push    Push
	Version string
	// Roots are the certificates that are trusted, nil for the system's.
	Roots *x509.CertPool
	// Dial connects to receivers, nil for the network with the guard.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Sender sends messages. It is safe for concurrent use.
type Sender struct {
	guard, pushGuard         Guard
	mail                     Mail
	pushes                   Push
	agent                    string
	transport, pushTransport *http.Transport
}

// New returns a Sender; nothing is connected before a message is sent.
func New(o Options) *Sender {
	// Anybody may enter an endpoint: it gets no access to loopback just because the gateway itself is there.
	pushGuard := Guard{Private: o.Guard.Private, Loopback: o.Guard.Private}
	return &Sender{
		guard: o.Guard, mail: o.Mail, pushes: o.Push, agent: "switchyard/" + o.Version, transport: o.transport(o.Guard),
		pushGuard: pushGuard, pushTransport: o.transport(pushGuard),
	}
}

func (o Options) transport(guard Guard) *http.Transport {
	dial := func(plain bool) func(ctx context.Context, network, address string) (net.Conn, error) {
		if o.Dial != nil {
			return o.Dial
		}
		allow := upstream.Control(func(a netip.Addr) string { return guard.check(a, plain) })
		return (&net.Dialer{Control: allow, Timeout: attemptLimit}).DialContext
	}
	secure := dial(false)
	return &http.Transport{
		Proxy:       nil,
		DialContext: dial(true),
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			plain, err := secure(ctx, network, address)
			if err != nil {
				return nil, err
			}
			host, _, _ := net.SplitHostPort(address)
			c := tls.Client(plain, &tls.Config{ServerName: host, RootCAs: o.Roots, MinVersion: tls.VersionTLS12})
			if err := c.HandshakeContext(ctx); err != nil {
				plain.Close()
				return nil, err
			}
			return c, nil
		},
		MaxIdleConnsPerHost: 2, MaxIdleConns: 200, IdleConnTimeout: 30 * time.Second,
		MaxResponseHeaderBytes: maxAnswer, DisableCompression: true,
	}
}

// Close closes idle connections.
func (s *Sender) Close() {
	s.transport.CloseIdleConnections()
	s.pushTransport.CloseIdleConnections()
}

// Describe returns an event as one line of plain text, as the chat bot does.
func (s *Sender) Describe(e domain.Event, words domain.StageWords) string {
	return bot.Describe(e, words).PlainText()
}

// Send sends a message, or the rest of its requests, to a target. It takes at most 10 s.
func (s *Sender) Send(ctx context.Context, t domain.Target, m domain.Message) (sent domain.SendResult) {
	began := time.Now()
	defer func() { sent.Took = time.Since(began) }()
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	if device, ok := domain.ParsePushAddress(t.URL); ok {
		return s.push(ctx, device, m)
	}
	r, _, err := parse(t.URL.Reveal())
	if err != nil {
		return domain.SendResult{Err: err}
	}
	m = literal(m, t.Progress.Skipped, r.limit)
	if r.mail != nil {
		return s.mail.send(ctx, r.mail, m)
	}
	requests := r.requests(&t, m, clock.Now())
	accepted := min(t.Progress.Parts, len(requests))
	for _, request := range requests[accepted:] {
		if sent = s.post(ctx, t.URL, request); sent.Err != nil {
			break
		}
		accepted++
	}
	sent.Parts = accepted
	return sent
}

// post sends one request for the target of an address. It uses the transport itself: a client would follow redirects.
func (s *Sender) post(ctx context.Context, address domain.Secret, r request) domain.SendResult {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(r.body))
	if err != nil {
		return domain.SendResult{Err: domain.Errorf(domain.BadGateway, "the address cannot be used")}
	}
	request.Header = r.header
	request.Header.Set("User-Agent", s.agent)
	if user := request.URL.User; user != nil {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
		request.URL.User = nil
	}
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return domain.SendResult{Err: failure(err)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // the rest is not read
	status := response.StatusCode
	switch {
	case status >= 200 && status < 300 && err != nil:
		return domain.SendResult{Err: failure(err)}
	case status >= 200 && status < 300:
		return domain.SendResult{Status: status}
	case status >= 300 && status < 400:
		err = domain.Errorf(domain.BadGateway, "%d: redirects are not followed", status)
	default:
		says := excerpt(body, address, request.Header)
		err = domain.Errorf(domain.BadGateway, "%d %s%s", status, http.StatusText(status), says)
	}
	retryAfter := cmp.Or(pause(response.Header.Get("Retry-After")), pauseIn(body))
	return domain.SendResult{Status: status, RetryAfter: retryAfter, Err: err}
}

func failure(err error) error { return upstream.Explain(err, false, attemptLimit) }

// minSecret is how many characters a part of an address must have to count as a secret.
const minSecret = 4

// excerpt returns the beginning of an answer, unless it repeats secrets of the address or of the header that was sent.
func excerpt(body []byte, address domain.Secret, sent http.Header) string {
	text := bot.Short(string(body[:min(len(body), 4*maxExcerpt)]), maxExcerpt)
	if text == "" {
		return ""
	}
	u, err := url.Parse(address.Reveal())
	if err != nil {
		return ""
	}
	password, _ := u.User.Password()
	rest := strings.Join([]string{u.User.Username(), password, u.Path, u.RawQuery}, "/")
	for part := range strings.FieldsFuncSeq(rest, func(r rune) bool { return strings.ContainsRune("/?&=:@,-", r) }) {
		if len(part) >= minSecret && strings.Contains(text, part) {
			return ""
		}
	}
	if _, login, ok := strings.Cut(sent.Get("Authorization"), " "); ok && strings.Contains(text, login) {
		return ""
	}
	return ": " + text
}

// pause reads Retry-After: seconds or a date.
func pause(text string) time.Duration {
	if seconds, err := strconv.ParseUint(strings.TrimSpace(text), 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return at.Sub(clock.Now())
	}
	return 0
}

// pauseIn reads the pause in seconds that a JSON answer asks for: Discord's, and Telegram's, which has no header.
func pauseIn(body []byte) time.Duration {
	type asked struct {
		RetryAfter float64 `json:"retry_after"`
	}
	var answer struct {
		asked
		Parameters asked
	}
	if json.Unmarshal(body, &answer) != nil {
		return 0
	}
	return time.Duration(min(max(answer.RetryAfter, answer.Parameters.RetryAfter, 0), 1e6) * float64(time.Second))
}
