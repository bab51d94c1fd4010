package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"switchyard/internal/domain"
)

// statuses is the one table from error codes to HTTP statuses.
var statuses = map[domain.Code]int{
	domain.Invalid:         http.StatusBadRequest,
	domain.Unauthorized:    http.StatusUnauthorized,
	domain.Forbidden:       http.StatusForbidden,
	domain.NotFound:        http.StatusNotFound,
	domain.Conflict:        http.StatusConflict,
	domain.TooLarge:        http.StatusRequestEntityTooLarge,
	domain.UnsupportedType: http.StatusUnsupportedMediaType,
	domain.RateLimited:     http.StatusTooManyRequests,
	domain.BadGateway:      http.StatusBadGateway,
	domain.Unavailable:     http.StatusServiceUnavailable,
	domain.LoopDetected:    http.StatusLoopDetected,
	domain.Internal:        http.StatusInternalServerError,
}

func StatusOf(err error) int { return statuses[domain.CodeOf(err)] }

// An ErrorForm writes a refusal in the form that an endpoint documents.
type ErrorForm func(w http.ResponseWriter, status int, message string)

func Plain(w http.ResponseWriter, status int, message string) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	WriteBytes(w, status, []byte(message))
}

// OKFalse writes {"ok":false,"error":message}.
func OKFalse(w http.ResponseWriter, status int, message string) {
	WriteJSON(w, status, struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}{false, message})
}

// NotFound answers requests that match no route.
func NotFound(w http.ResponseWriter, _ *http.Request) { Plain(w, http.StatusNotFound, "not found") }

// HandlerFunc is a handler whose error is written by the adapter around it. When it returns an error it must not have
// written anything.
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

// Errors writes errors to clients and logs the causes that users must not see.
type Errors struct{ Log *slog.Logger }

// Handler adapts h, writing its errors in the given form.
func (e Errors) Handler(form ErrorForm, h HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			e.Write(w, r, form, err)
		}
	}
}

func (e Errors) Write(w http.ResponseWriter, r *http.Request, form ErrorForm, err error) {
	if IsClientGone(r, err) {
		form(w, http.StatusServiceUnavailable, "the request ended before its answer")
		return
	}
	e.LogCause(r, err)
	form(w, StatusOf(err), domain.MessageOf(err))
}

// IsClientGone reports whether the request failed because its client went away. That is not a failure of ours, and most
// likely nobody reads the response.
func IsClientGone(r *http.Request, err error) bool {
	return r.Context().Err() != nil && errors.Is(err, context.Canceled)
}

// LogCause logs an internal error, which the response does not show, with the request's id, unless the client is gone.
func (e Errors) LogCause(r *http.Request, err error) {
	if domain.CodeOf(err) == domain.Internal && !IsClientGone(r, err) {
		e.Log.ErrorContext(r.Context(), "request failed", "id", RequestID(r.Context()), "method", r.Method,
			"path", r.URL.Path, "error", err)
	}
}

// InvalidBut turns errors into Invalid with the same message, as some endpoints document, except Forbidden, Unavailable
// and the codes listed. The cause of an internal error is logged.
func (e Errors) InvalidBut(r *http.Request, err error, but ...domain.Code) error {
	if code := domain.CodeOf(err); err == nil || slices.Contains(append(but, domain.Forbidden, domain.Unavailable), code) {
		return err
	}
	e.LogCause(r, err)
	return domain.Errorf(domain.Invalid, "%s", domain.MessageOf(err))
}
