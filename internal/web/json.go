package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// JSONType and NoStore are constant header values. Assigning the slices saves an allocation each.
var (
	JSONType = []string{"application/json"}
	NoStore  = []string{"no-store"}
)

// WriteJSON writes v as JSON. It panics when v cannot be encoded, before anything is written.
func WriteJSON(w http.ResponseWriter, status int, v any) { WriteEncoded(w, status, EncodeJSON(v)) }

// WriteOK writes {"ok":true}.
func WriteOK(w http.ResponseWriter) { WriteEncoded(w, http.StatusOK, okBody) }

var okBody = []byte(`{"ok":true}`)

// WriteEncoded writes JSON that has already been encoded.
func WriteEncoded(w http.ResponseWriter, status int, body []byte) {
	header := w.Header()
	header["Content-Type"], header["Cache-Control"] = JSONType, NoStore
	WriteBytes(w, status, body)
}

// WriteBytes writes a body. The caller has set its Content-Type.
func WriteBytes(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

// EncodeJSON encodes v without escaping <, > and &, which is safe given nosniff and the media type. It panics when v
// cannot be encoded.
func EncodeJSON(v any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil { // only a programming mistake can get here
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// AppendJSON appends text as a JSON string, as EncodeJSON does. Most texts need no escaping and are copied.
func AppendJSON(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return append(b, EncodeJSON(text)...)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}

// OrNull returns nil, which is null in JSON, for a zero value.
func OrNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}
