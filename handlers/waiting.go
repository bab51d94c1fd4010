package handlers

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
)

// Waiting returns the HTTP of a gateway that has no Service yet: every address says in its own form why, but for /healthz and what
// pages load. Reason must not return nil.
func (g Gateway) Waiting(reason func() error) http.Handler {
	g.Service = &service.Service{}
	return g.router(func(http.ResponseWriter, *http.Request) error {
		return domain.Errorf(domain.Unavailable, "%s", domain.MessageOf(reason()))
	})
}

// servesAlways are the routes that need no service.
var servesAlways = map[string]bool{"GET /healthz": true, "GET /static/*": true}

// whileWaiting is what answers a route instead of h while there is no service.
func (t *routeTable) whileWaiting(address string, h web.HandlerFunc) web.HandlerFunc {
	if servesAlways[address] {
		return h
	}
	return t.waiting
}

// uncheckedHandler stands for the check of who asks: nobody learns anything but that there is no service.
func uncheckedHandler(next http.Handler) http.Handler { return next }
