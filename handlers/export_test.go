package handlers

import (
	_ "embed"

	"github.com/go-chi/chi/v5"
)

// Routes returns the route table, for tests of every route.
func Routes(g Gateway) chi.Routes { return g.router(nil) }

// OpenAPI is the API's OpenAPI document.
//
//go:embed api/openapi.json
var OpenAPI []byte
