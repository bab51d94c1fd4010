package notify

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/SherClockHolmes/webpush-go"

	"switchyard/internal/domain"
)

// Push is how browsers are reached through their push services.
type Push struct {
	// Keys returns the gateway's keys; nil if nothing can be pushed.
	Keys func(ctx context.Context) (domain.PushKeys, error)
	// PublicURL is the gateway's address, "" if it is not known.
	PublicURL string
}

const (
	// pushSeconds is how long a push service keeps a message for a browser that is away.
	pushSeconds = 24 * 60 * 60
	// pushTitle and pushText are the longest title and text of a push message, in bytes: escaped and encrypted, it must
	// fit into 4 KiB.
	pushTitle, pushText = 200, 400
	// maxPush is the longest message that is encrypted, in bytes.
	maxPush = 3800
)

// checkPush returns Invalid for a subscription to which nothing may be sent.
func (s *Sender) checkPush(ctx context.Context, d domain.PushDevice) error {
	u, err := url.Parse(d.Endpoint)
	if err != nil || len(d.Endpoint) > domain.MaxTargetURL/2 || u.Hostname() == "" || u.User != nil ||
		u.Scheme != "https" && (u.Scheme != "http" || !s.pushGuard.Private) {
		return domain.Errorf(domain.Invalid, "endpoint: must be the https address of a push service")
	}
	point, err := decodeKey(d.P256dh)
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(point)
	}
	if err != nil {
		return domain.Errorf(domain.Invalid, "keys: p256dh must be a point on the curve P-256 in base64url")
	}
	if auth, err := decodeKey(d.Auth); err != nil || len(auth) != 16 {
		return domain.Errorf(domain.Invalid, "keys: auth must be 16 bytes in base64url")
	}
	if err := s.pushGuard.checkURL(ctx, u); err != nil {
		return domain.Errorf(domain.Invalid, "endpoint: %s", strings.TrimPrefix(domain.MessageOf(err), "url: "))
	}
	return nil
}

// privateNames end the names of hosts that only their own network knows.
var privateNames = []string{
	"localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "arpa", "test", "example", "invalid",
}

// subject returns what tells push services who sends: the gateway's address if they could reach it, otherwise a mail
// address. Apple refuses others.
func (s *Sender) subject() string {
	if u, err := url.Parse(s.pushes.PublicURL); err == nil && u.Scheme == "https" {
		name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		_, notName := netip.ParseAddr(name)
		last := strings.LastIndexByte(name, '.')
		if notName != nil && last > 0 && !slices.Contains(privateNames, name[last+1:]) {
			return s.pushes.PublicURL
		}
	}
	from, err := mail.ParseAddress(s.mail.SMTPFrom)
	if err != nil {
		return "switchyard@example.com"
	}
	return from.Address
}

func decodeKey(text string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
}

// push sends a message to a browser, encrypted for it alone (RFC 8291).
func (s *Sender) push(ctx context.Context, d domain.PushDevice, m domain.Message) (sent domain.SendResult) {
	if s.pushes.Keys == nil {
		return domain.SendResult{Err: domain.Errorf(domain.BadGateway, "this gateway does not push to browsers")}
	}
	keys, err := s.pushes.Keys(ctx)
	if err != nil {
		return domain.SendResult{
			Err: domain.WrapError(domain.BadGateway, err, "the keys for push services could not be read"),
		}
	}
	shown := map[string]string{"title": domain.CutBytes(m.Title, pushTitle), "link": m.Link, "tag": m.ID}
	var payload []byte
	for _, n := range []int{pushText, pushText / 4, 0} {
		if shown["body"] = domain.CutBytes(m.Text, n); n == 0 {
			delete(shown, "link")
		}
		if payload, _ = json.Marshal(shown); len(payload) <= maxPush { // strings always encode
			break
		}
	}
	options := &webpush.Options{
		HTTPClient: pushClient{s}, Subscriber: s.subject(), TTL: pushSeconds, Urgency: webpush.UrgencyNormal,
		VAPIDPublicKey: keys.Public, VAPIDPrivateKey: keys.Private.Reveal(),
	}
	if m.Signal == domain.SignalStop {
		options.Urgency = webpush.UrgencyHigh
	}
	to := &webpush.Subscription{Endpoint: d.Endpoint, Keys: webpush.Keys{P256dh: d.P256dh, Auth: d.Auth}}
	response, err := webpush.SendNotificationWithContext(ctx, payload, to, options)
	if err != nil {
		return domain.SendResult{Err: failure(err)}
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)) // so that the connection can be used again
	sent.Status = response.StatusCode
	if sent.Status >= 200 && sent.Status < 300 {
		sent.Parts = 1
		return sent
	}
	sent.RetryAfter = pause(response.Header.Get("Retry-After"))
	sent.Err = domain.Errorf(domain.BadGateway, "the push service did not accept it")
	if sent.Status == http.StatusNotFound { // as 410: the subscription is over
		sent.Status = http.StatusGone
	}
	return sent
}

// pushClient sends the requests of package webpush through the guarded transport, which follows no redirects.
type pushClient struct{ s *Sender }

func (c pushClient) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("User-Agent", c.s.agent)
	return c.s.pushTransport.RoundTrip(r)
}
