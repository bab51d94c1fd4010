package notify

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/SherClockHolmes/webpush-go"

	"switchyard/internal/domain"
)

// Push is how browsers are reached through their push services.
type Push struct {
	// Keys returns the gateway's keys; nil if nothing can be pushed.
	Keys func(ctx context.Context) (domain.PushKeys, error)
	// Subscriber is an https address at which push services find who sends, "" for none.
	Subscriber string
}

const (
	// pushSeconds is how long a push service keeps a message for a browser that is away.
	pushSeconds = 24 * 60 * 60
	// pushTitle and pushText are how much a push message has, in bytes: escaped and encrypted, it must fit into 4 KiB.
	pushTitle, pushText = 200, 400
	// maxPush is up to how many bytes a message keeps its link.
	maxPush = 3800
)

// checkPush returns Invalid for a subscription to which nothing may be sent.
func (s *Sender) checkPush(ctx context.Context, d domain.PushDevice) error {
	u, err := url.Parse(d.Endpoint)
	if err != nil || len(d.Endpoint) > domain.MaxTargetURL/2 || u.Scheme != "https" && u.Scheme != "http" ||
		u.Hostname() == "" || u.User != nil {
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
	if err := s.guard.checkURL(ctx, u); err != nil {
		return domain.Errorf(domain.Invalid, "endpoint: %s", strings.TrimPrefix(domain.MessageOf(err), "url: "))
	}
	return nil
}

func decodeKey(text string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
}

// push sends a message to a browser, encrypted for it alone (RFC 8291).
func (s *Sender) push(ctx context.Context, d domain.PushDevice, m domain.Message) (sent domain.Sent) {
	if s.pushes.Keys == nil {
		return domain.Sent{Err: domain.Errorf(domain.BadGateway, "this gateway does not push to browsers")}
	}
	keys, err := s.pushes.Keys(ctx)
	if err != nil {
		return domain.Sent{Err: domain.WrapError(domain.BadGateway, err, "the keys for push services could not be read")}
	}
	shown := map[string]string{
		"title": domain.CutBytes(m.Title, pushTitle), "body": domain.CutBytes(m.Text, pushText), "link": m.Link, "tag": m.ID,
	}
	payload, _ := json.Marshal(shown) // strings always encode
	if len(payload) > maxPush {
		delete(shown, "link")
		payload, _ = json.Marshal(shown)
	}
	options := &webpush.Options{
		HTTPClient: pushClient{s}, Subscriber: s.pushes.Subscriber, TTL: pushSeconds, Urgency: webpush.UrgencyNormal,
		VAPIDPublicKey: keys.Public, VAPIDPrivateKey: keys.Private.Reveal(),
	}
	if m.Signal == domain.SignalStop {
		options.Urgency = webpush.UrgencyHigh
	}
	if !strings.HasPrefix(options.Subscriber, "https://") {
		options.Subscriber = "switchyard@example.com" // push services insist on something that looks like an address
	}
	to := &webpush.Subscription{Endpoint: d.Endpoint, Keys: webpush.Keys{P256dh: d.P256dh, Auth: d.Auth}}
	response, err := webpush.SendNotificationWithContext(ctx, payload, to, options)
	if err != nil {
		return domain.Sent{Err: failure(err)}
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)) // so that the connection can be used again
	sent.Status = response.StatusCode
	if sent.Status >= 200 && sent.Status < 300 {
		sent.Parts = 1
		return sent
	}
	sent.RetryAfter = pause(response.Header.Get("Retry-After"))
	sent.Err = domain.Errorf(domain.BadGateway, "%d %s", sent.Status, http.StatusText(sent.Status))
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
	return c.s.transport.RoundTrip(r)
}
