package handlers

import (
	"net/http"

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
	domain.BadGateway:      http.StatusBadGateway,
	domain.Unavailable:     http.StatusServiceUnavailable,
	domain.Internal:        http.StatusInternalServerError,
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
