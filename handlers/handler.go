// Package handlers is the HTTP of the gateway and of the project server: it decodes a request, makes one service call,
// and encodes the answer. Rules are in package service, SQL and other servers are never seen here.
package handlers

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"

	"switchyard/internal/domain"
)

// handlerFunc is a handler that leaves writing its error to the adapter around it.
// It must not have written anything when it returns an error.
type handlerFunc func(w http.ResponseWriter, r *http.Request) error

// errorWriter writes errors for the API adapters and logs what users must not see.
type errorWriter struct{ log *slog.Logger }

// api adapts h, writing its errors in the given form.
func (e errorWriter) api(form errorForm, h handlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			e.write(w, r, form, err)
		}
	}
}

func (e errorWriter) write(w http.ResponseWriter, r *http.Request, form errorForm, err error) {
	if ended(r, err) {
		form(w, http.StatusServiceUnavailable, "the request ended before its answer")
		return
	}
	e.logCause(r, err)
	form(w, statuses[domain.CodeOf(err)], domain.MessageOf(err))
}

// ended reports whether the request failed because its client gave it up: no failure of ours, and most likely nobody
// reads the answer.
func ended(r *http.Request, err error) bool {
	return r.Context().Err() != nil && errors.Is(err, context.Canceled)
}

// logCause logs what the answer to a failed request does not say, under the request's id.
func (e errorWriter) logCause(r *http.Request, err error) {
	if domain.CodeOf(err) == domain.Internal {
		e.log.ErrorContext(r.Context(), "request failed", "id", requestID(r.Context()), "method", r.Method, "path", r.URL.Path, "error", err)
	}
}

// writeJSON encodes v before it writes the status.
func writeJSON(w http.ResponseWriter, status int, v any) { writeEncoded(w, status, encodeJSON(v)) }

// writeOK writes {"ok":true}.
func writeOK(w http.ResponseWriter) { writeEncoded(w, http.StatusOK, okBody) }

var okBody = []byte(`{"ok":true}`)

// jsonMedia and noStore are headers that never change. They are assigned as they are: making a list of one value anew
// takes an allocation.
var (
	jsonMedia = []string{"application/json"}
	noStore   = []string{"no-store"}
)

// writeEncoded writes JSON that is encoded already.
func writeEncoded(w http.ResponseWriter, status int, body []byte) {
	header := w.Header()
	header["Content-Type"], header["Cache-Control"] = jsonMedia, noStore
	writeBytes(w, status, body)
}

// encodeJSON encodes v with <, > and & as they are, which nosniff and the media type make safe.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil { // only a programming mistake can get here
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// appendJSON appends text as encodeJSON encodes it. Most texts need no encoding.
func appendJSON(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return append(b, encodeJSON(text)...)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}

// rescue turns a panic into a 500 that names the request's id, which it gives to one that has none.
func rescue(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if cause == http.ErrAbortHandler {
				panic(cause)
			}
			id := requestID(r.Context())
			if id == "" {
				id = rand.Text()
				w.Header().Set("X-Request-Id", id)
			}
			log.ErrorContext(r.Context(), "panic", "id", id, "method", r.Method, "path", r.URL.Path, "cause", cause, "stack", string(debug.Stack()))
			plainForm(w, http.StatusInternalServerError, "internal error, request "+id)
		}()
		next.ServeHTTP(w, r)
	})
}

// refused makes every failure but those of the codes listed a 400 with the same message, as some endpoints document
// it; what the message hides is logged.
func (e errorWriter) refused(r *http.Request, err error, but ...domain.Code) error {
	if slices.Contains(but, domain.CodeOf(err)) {
		return err
	}
	e.logCause(r, err)
	return domain.Errorf(domain.Invalid, "%s", domain.MessageOf(err))
}
