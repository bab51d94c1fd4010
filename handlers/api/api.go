// Package api is the JSON API of the gateway: it decodes a request, makes one service call, and encodes the answer. Rules
// are in package service; pages, SQL and other servers are never seen here.
package api

import (
	"log/slog"

	"switchyard/internal/service"
	"switchyard/internal/web"
)

// API holds the handlers; each file adds those of its noun.
type API struct {
	web.Errors
	service       *service.Service
	metrics       Metrics
	registryCache registryCache
}

// Metrics counts open streams.
type Metrics interface {
	// StreamOpened counts a stream until the function that it returns is called.
	StreamOpened() (closed func())
}

// New returns the handlers over s. log has the causes of what fails.
func New(s *service.Service, log *slog.Logger, metrics Metrics) *API {
	return &API{Errors: web.Errors{Log: log}, service: s, metrics: metrics}
}
