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

// Body is a decoded JSON object. Its methods read fields by their exact names; unknown ones are ignored.
type Body map[string]json.RawMessage

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

// DecodeJSON reads a request's body, which must be a single JSON object of at most limit bytes. It returns Invalid for
// an empty body (of any type) and for anything but one object, UnsupportedType for another Content-Type, and TooLarge.
func DecodeJSON(w http.ResponseWriter, r *http.Request, limit int64) (Body, error) {
	_, fields, err := readJSON(w, r, limit)
	return fields, err
}

// ReadJSON returns a request's JSON object unparsed. It returns the errors of DecodeJSON.
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	data, _, err := readJSON(w, r, limit)
	return data, err
}

func readJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, Body, error) {
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
	var fields Body
	if !utf8.Valid(data) || json.Unmarshal(data, &fields) != nil || fields == nil {
		return nil, nil, domain.Errorf(domain.Invalid, "the body must be one JSON object")
	}
	return data, fields, nil
}

// Text returns a required string field. It returns Invalid when the field is missing or not a string.
func (b Body) Text(name string) (string, error) {
	value, err := b.OptionalText(name)
	if err == nil && value == nil {
		err = domain.Errorf(domain.Invalid, "%s: is required and must be a string", name)
	}
	if err != nil {
		return "", err
	}
	return *value, nil
}

// OptionalText returns an optional string field, nil when it is absent or null. It returns Invalid for any other type.
func (b Body) OptionalText(name string) (*string, error) {
	raw, ok := b[name]
	if !ok {
		return nil, nil
	}
	var value *string
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, domain.Errorf(domain.Invalid, "%s: must be a string", name)
	}
	return value, nil
}
