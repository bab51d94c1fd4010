// Package api is the gateway's JSON API. Each handler decodes a request, makes one service call, and encodes the
// answer. Rules are in package service; the package must know nothing of pages, SQL or other servers.
package api

import (
	"context"
	"log/slog"
	"net/http"

	"switchyard/internal/metrics"
	"switchyard/internal/service"
	"switchyard/internal/web"
)

// API holds the handlers; each file has those of one noun. Remove and Do make those that only name something by its id.
type API struct {
	web.Errors
	service *service.Service
	metrics *metrics.Counts
	held    *web.HeldCalls
	base    func(*http.Request) string // the gateway's address for people
}

// New returns the handlers over s. Causes of failures go to log; base returns the gateway's address for people.
func New(
	s *service.Service, log *slog.Logger, counts *metrics.Counts, held *web.HeldCalls, base func(*http.Request) string,
) *API {
	return &API{Errors: web.Errors{Log: log}, service: s, metrics: counts, held: held, base: base}
}

// Remove answers 204 once remove has removed what the path's id names.
func Remove(remove func(ctx context.Context, id string) error) web.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		return noContent(w, remove(r.Context(), web.PathParam(r, "id")))
	}
}

// Do answers {"ok":true} once do has acted on what the path's id names.
func Do(do func(ctx context.Context, id string) error) web.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		return ok(w, do(r.Context(), web.PathParam(r, "id")))
	}
}

// answer writes a service call's result as JSON, unless the call failed.
func answer(w http.ResponseWriter, status int, result any, err error) error {
	if err == nil {
		web.WriteJSON(w, status, result)
	}
	return err
}

// ok writes {"ok":true}, unless the service call failed.
func ok(w http.ResponseWriter, err error) error {
	if err == nil {
		web.WriteEncoded(w, http.StatusOK, []byte(`{"ok":true}`))
	}
	return err
}

// noContent answers 204, unless the service call failed.
func noContent(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
