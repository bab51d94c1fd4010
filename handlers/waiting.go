package handlers

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/service"
)

// Waiting returns the handler of a gateway that has no Service yet: every address except /healthz and the assets of
// pages answers with the reason, in its usual format. reason must not return nil.
func (g Gateway) Waiting(reason func() error) http.Handler {
	g.Service = &service.Service{}
	return g.router(func(http.ResponseWriter, *http.Request) error {
		return domain.Errorf(domain.Unavailable, "%s", domain.MessageOf(reason()))
	})
}
