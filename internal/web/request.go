// Package web holds what all our HTTP servers share: the guards in front of all routes, request info, access log,
// limits, decoding, and how responses and errors are written. It must know neither routes nor rules of the gateway.
package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

// PathParam returns a decoded path parameter. chi matches the escaped path where that differs from the default escaping
// ("a%2Fb"), and the plain path otherwise ("50%").
func PathParam(r *http.Request, name string) string {
	value := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return value
	}
	plain, err := url.PathUnescape(value)
	if err != nil { // net/http has parsed the whole path already
		return value
	}
	return plain
}

// Limits of a request's body, in bytes.
const (
	MaxBody = 1 << 20
	// SmallBody is for joining, heartbeats and logins, which anybody can send.
	SmallBody = 4 << 10
)

// Body is a JSON object, whose fields are read by their exact names; unknown ones are ignored. Its first error stays,
// so that one check after reading all fields is enough.
type Body struct {
	Data   []byte // as it was sent
	Fields wire.Object
	firstError
}

// firstError is why what was sent, or a part of it, could not be read.
type firstError struct{ err error }

func (f *firstError) Err() error { return f.err }

func (f *firstError) fail(format string, args ...any) {
	if f.err == nil {
		f.err = domain.Errorf(domain.Invalid, format, args...)
	}
}

// ReadBody reads a request's body, at most limit bytes. It returns the errors of BodyError.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	return data, BodyError(err)
}

// BodyError translates what http.MaxBytesReader returned: TooLarge, Unavailable if strangers send too much, otherwise
// Invalid.
func BodyError(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil, domain.CodeOf(err) == domain.Unavailable:
		return err
	case errors.As(err, &tooLarge):
		return domain.Errorf(domain.TooLarge, "the body must be at most %d bytes", tooLarge.Limit)
	}
	return domain.WrapError(domain.Invalid, err, "the body could not be read")
}

// DecodeJSON reads a request's body, which must be a single JSON object of at most limit bytes. Its error is Invalid
// for an empty body (of any type) and for anything but one object, UnsupportedType for another Content-Type, or
// TooLarge.
func DecodeJSON(w http.ResponseWriter, r *http.Request, limit int64) *Body {
	b := &Body{}
	b.Data, b.err = ReadBody(w, r, limit)
	if b.err != nil && domain.CodeOf(b.err) != domain.TooLarge {
		return b
	}
	media, _, mimeErr := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case len(b.Data) == 0:
		b.err = domain.Errorf(domain.Invalid, "a JSON body is required")
	case media != "application/json" || mimeErr != nil && !errors.Is(mimeErr, mime.ErrInvalidMediaParameter):
		b.err = domain.Errorf(domain.UnsupportedType, "the body must be sent as Content-Type: application/json")
	case b.err != nil:
	default:
		if b.Fields, b.err = wire.ParseObject(b.Data); b.err != nil {
			b.err = domain.Errorf(domain.Invalid, "the body must be one JSON object")
		}
	}
	return b
}

// DecodeOptionalJSON is DecodeJSON for a body that may be missing.
func DecodeOptionalJSON(w http.ResponseWriter, r *http.Request, limit int64) *Body {
	b := DecodeJSON(w, r, limit)
	if len(b.Data) == 0 && domain.CodeOf(b.err) == domain.Invalid {
		return &Body{}
	}
	return b
}

// Raw returns a field as it was sent.
func (b *Body) Raw(name string) (raw json.RawMessage, given bool) {
	raw = b.Fields.Get(name)
	return raw, raw != nil
}

// Text reads a required string. A missing one is Invalid.
func (b *Body) Text(name string) string {
	value := b.OptionalText(name)
	if value == nil {
		b.fail("%s: is required and must be a string", name)
		return ""
	}
	return *value
}

// OptionalText reads a string, nil when it is absent or null. Any other type is Invalid.
func (b *Body) OptionalText(name string) (value *string) {
	if raw, given := b.Raw(name); given && json.Unmarshal(raw, &value) != nil {
		b.fail("%s: must be a string", name)
	}
	return value
}

// OptionalNumber reads a whole number, nil when it is absent or null. Anything else is Invalid.
func (b *Body) OptionalNumber(name string) (value *int64) {
	if raw, given := b.Raw(name); given && json.Unmarshal(raw, &value) != nil {
		b.fail("%s: must be a whole number", name)
	}
	return value
}

// OptionalBool reads true or false, false when it is absent or null. Any other type is Invalid.
func (b *Body) OptionalBool(name string) bool {
	value := b.BoolOrNull(name)
	return value != nil && *value
}

// BoolOrNull is OptionalBool, but nil when it is absent or null.
func (b *Body) BoolOrNull(name string) (value *bool) {
	if raw, given := b.Raw(name); given && json.Unmarshal(raw, &value) != nil {
		b.fail("%s: must be true or false", name)
	}
	return value
}

// OptionalTexts reads a list of strings, nil when it is absent or null. Anything else is Invalid.
func (b *Body) OptionalTexts(name string) (values []string) {
	raw, given := b.Raw(name)
	var list []*string
	if given && json.Unmarshal(raw, &list) != nil {
		b.fail("%s: must be a list of strings", name)
	}
	for _, value := range list {
		if value == nil {
			b.fail("%s: must be a list of strings", name)
			return nil
		}
		values = append(values, *value)
	}
	return values
}

// Wait reads how long an answer may be held: a duration of at most MaxHeldWait, 0 when it is absent or null.
func (b *Body) Wait() time.Duration {
	text := b.OptionalText("wait")
	if text == nil {
		return 0
	}
	wait, err := time.ParseDuration(*text)
	if err != nil || wait < 0 {
		b.fail("wait: must be a duration such as 30s")
	}
	return min(wait, MaxHeldWait)
}

// MaxHeldWait is the longest that a claim or a question waits: clients of MCP give up after a minute.
const MaxHeldWait = 50 * time.Second

type FeedQuery struct {
	Since uint64        // only events after this time, in Unix milliseconds
	Wait  time.Duration // how long the response may be held
	// Pipeline is the pipeline version that the caller knows; a newer one ends the wait. "" waits for events only.
	Pipeline string
}

func ParseFeedQuery(r *http.Request) (FeedQuery, error) {
	query := ParseQuery(r)
	q := FeedQuery{Pipeline: query.Get("pipeline")}
	if query.Has("since") {
		var err error
		if q.Since, err = strconv.ParseUint(query.Get("since"), 10, 64); err != nil {
			query.fail("since: must be an unsigned 64-bit decimal number")
		}
	}
	q.Wait = query.Wait()
	return q, query.Err()
}

// BearerToken returns the token of the Authorization header, none when the scheme is not Bearer.
func BearerToken(r *http.Request) (token domain.Secret, ok bool) {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return domain.Secret(strings.TrimSpace(text)), true
}

// MatchesToken compares a token with the secret in constant time.
func MatchesToken(token, secret domain.Secret) bool {
	given, want := sha256.Sum256([]byte(token.Reveal())), sha256.Sum256([]byte(secret.Reveal()))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1
}

// Origin returns the scheme and host by which the client has reached the gateway.
func Origin(r *http.Request) *url.URL {
	if IsHTTPS(r) {
		return &url.URL{Scheme: "https", Host: r.Host}
	}
	return &url.URL{Scheme: "http", Host: r.Host}
}

// WallToken is the parameter with the token in a wall display's address.
const WallToken = "token"

// WallLink returns the address that a wall display opens once, at a gateway with this address.
func WallLink(base string, token domain.Secret) string {
	return strings.TrimRight(base, "/") + "/wall?" + WallToken + "=" + url.QueryEscape(token.Reveal())
}

// IsHTTPS reports whether the client used HTTPS, possibly to a proxy. Any client can forge X-Forwarded-Proto, so
// only the Secure attribute of cookies and the scheme of displayed addresses may depend on it.
func IsHTTPS(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return r.TLS != nil || strings.EqualFold(strings.TrimSpace(first), "https")
}
