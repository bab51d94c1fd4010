package handlers

import (
	_ "embed"

	"github.com/go-chi/chi/v5"
)

// Routes is the route table, for tests that hold something of every route.
func Routes(g Gateway) chi.Routes { return g.router(nil) }

// OpenAPI is the document of the API.
//
//go:embed api/openapi.json
var OpenAPI []byte
