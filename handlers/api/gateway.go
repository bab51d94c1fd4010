package api

import (
	_ "embed"
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

func (a *API) Healthz(w http.ResponseWriter, r *http.Request) error {
	web.Plain(w, http.StatusOK, "ok")
	return nil
}

func (a *API) Readyz(w http.ResponseWriter, r *http.Request) error {
	if err := a.service.Ready(r.Context()); err != nil {
		a.LogCause(r, err)
		return domain.Errorf(domain.Unavailable, "%s", domain.MessageOf(err))
	}
	web.Plain(w, http.StatusOK, "ready")
	return nil
}

var modeBody = []byte(`{"mode":"gateway"}`)

func (a *API) Mode(w http.ResponseWriter, r *http.Request) error {
	web.WriteEncoded(w, http.StatusOK, modeBody)
	return nil
}

// openAPI describes /api, /gateway and /oauth. A test compares it with the routes and their answers.
//
//go:embed openapi.json
var openAPI []byte

func (a *API) OpenAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	web.WriteBytes(w, http.StatusOK, openAPI)
	return nil
}

func (a *API) SignInStatus(w http.ResponseWriter, r *http.Request) error {
	return answer(w, http.StatusOK, a.service.SignIn.Status(), nil)
}

func (a *API) SignOut(w http.ResponseWriter, r *http.Request) error {
	status, err := a.service.SignIn.SignOut(r.Context())
	return answer(w, http.StatusOK, status, err)
}
