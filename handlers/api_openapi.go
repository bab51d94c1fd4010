package handlers

import (
	_ "embed"
	"net/http"
)

// openAPI describes /api, /gateway and /oauth. A test holds it against the routes and their answers.
//
//go:embed openapi.json
var openAPI []byte

func describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	writeBytes(w, http.StatusOK, openAPI)
}
