package web

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"unicode/utf8"

	"switchyard/internal/domain"
)

// Limits of a request's body, in bytes.
const (
	MaxBody = 1 << 20
	// SmallBody is for joining, heartbeats and logins, which anybody can send.
	SmallBody = 4 << 10
)

// Body is a JSON object, whose fields are read by their exact names; unknown ones are ignored. Its first error stays,
// so that it need be asked for only once, after all fields are read.
type Body struct {
	fields map[string]json.RawMessage
	err    error
}

// ReadBody reads a request's body, at most limit bytes. It returns the errors of BodyError.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	return data, BodyError(err)
}

// BodyError translates what http.MaxBytesReader returned: TooLarge, Unavailable where strangers send too much, else
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

// DecodeJSON reads a request's body, which must be a single JSON object of at most limit bytes. Its error is Invalid for
// an empty body (of any type) and for anything but one object, UnsupportedType for another Content-Type, or TooLarge.
func DecodeJSON(w http.ResponseWriter, r *http.Request, limit int64) *Body {
	_, fields, err := readJSON(w, r, limit)
	return &Body{fields, err}
}

// ReadJSON returns a request's JSON object unparsed. It returns the errors of DecodeJSON.
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	data, _, err := readJSON(w, r, limit)
	return data, err
}

func readJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, map[string]json.RawMessage, error) {
	data, err := ReadBody(w, r, limit)
	if err != nil && domain.CodeOf(err) != domain.TooLarge {
		return nil, nil, err
	}
	if len(data) == 0 {
		return nil, nil, domain.Errorf(domain.Invalid, "a JSON body is required")
	}
	if media, _, mimeErr := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" ||
		mimeErr != nil && !errors.Is(mimeErr, mime.ErrInvalidMediaParameter) {
		return nil, nil, domain.Errorf(domain.UnsupportedType, "the body must be sent as Content-Type: application/json")
	}
	if err != nil {
		return nil, nil, err
	}
	var fields map[string]json.RawMessage
	if !utf8.Valid(data) || json.Unmarshal(data, &fields) != nil || fields == nil {
		return nil, nil, domain.Errorf(domain.Invalid, "the body must be one JSON object")
	}
	return data, fields, nil
}

// Err returns why the body or one of its fields could not be read.
func (b *Body) Err() error { return b.err }

// Raw returns a field as it was sent.
func (b *Body) Raw(name string) (raw json.RawMessage, given bool) {
	raw, given = b.fields[name]
	return raw, given
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
	if raw, given := b.fields[name]; given && json.Unmarshal(raw, &value) != nil {
		b.fail("%s: must be a string", name)
	}
	return value
}

func (b *Body) fail(format, name string) {
	if b.err == nil {
		b.err = domain.Errorf(domain.Invalid, format, name)
	}
}
