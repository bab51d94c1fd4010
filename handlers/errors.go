package handlers

import (
	"net/http"

	"switchyard/internal/yard"
)

// statuses is the one table from error codes to HTTP statuses.
var statuses = map[yard.Code]int{
	yard.Invalid:         http.StatusBadRequest,
	yard.Unauthorized:    http.StatusUnauthorized,
	yard.Forbidden:       http.StatusForbidden,
	yard.NotFound:        http.StatusNotFound,
	yard.Conflict:        http.StatusConflict,
	yard.TooLarge:        http.StatusRequestEntityTooLarge,
	yard.UnsupportedType: http.StatusUnsupportedMediaType,
	yard.BadGateway:      http.StatusBadGateway,
	yard.Unavailable:     http.StatusServiceUnavailable,
	yard.Internal:        http.StatusInternalServerError,
}

// An errorForm writes a refusal in the form that an endpoint documents.
type errorForm func(w http.ResponseWriter, status int, message string)

// plainForm is the message as plain text.
func plainForm(w http.ResponseWriter, status int, message string) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	writeBytes(w, status, []byte(message))
}

// okForm is {"ok":false,"error":message}.
func okForm(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}{false, message})
}
