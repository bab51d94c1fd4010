package api

import (
	_ "embed"
	"net/http"

	"switchyard/internal/web"
)

// openAPI describes /api, /gateway and /oauth. A test compares it with the routes and their answers.
//
//go:embed openapi.json
var openAPI []byte

// OpenAPI serves the API's OpenAPI description.
func (a *API) OpenAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	web.WriteBytes(w, http.StatusOK, openAPI)
	return nil
}
