package handlers

import (
	"log/slog"
	"net/http"

	"switchyard/internal/web"
)

// What the console calls by these names until it has its own package.

type handlerFunc = web.HandlerFunc

type errorWriter struct{ log *slog.Logger }

func (e errorWriter) logCause(r *http.Request, err error) { web.Errors{Log: e.log}.LogCause(r, err) }

func (e errorWriter) write(w http.ResponseWriter, r *http.Request, form web.ErrorForm, err error) {
	web.Errors{Log: e.log}.Write(w, r, form, err)
}

const maxBody = web.MaxBody

var (
	plainForm = web.Plain
	requestID = web.RequestID
	pathParam = web.PathParam
	ended     = web.GivenUp
	noStore   = web.NoStore
	statusOf  = web.StatusOf
)

// isCallback reports whether path is where the identity provider sends browsers back to. Its address holds a code.
func isCallback(path string) bool { return path == "/callback" || path == "/oauth/callback" }

func unlessZero(text string) *string { return web.OrNull(text) }
