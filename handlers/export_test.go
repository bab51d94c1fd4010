package handlers

import "github.com/go-chi/chi/v5"

// Routes is the route table, for tests that hold something of every route.
func Routes(g Gateway) chi.Routes {
	h := &gateway{Gateway: g, errorWriter: errorWriter{g.Log}}
	return h.routes(newConsole(g.Service, newAccess(g), h.errorWriter))
}

// OpenAPI is the document of the API.
var OpenAPI = openAPI
