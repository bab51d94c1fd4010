package api

import "net/http"

type signInStatusJSON struct {
	Authenticated   bool   `json:"authenticated"`
	Expired         bool   `json:"expired"`
	ExpiresAt       uint64 `json:"expires_at"` // Unix milliseconds
	HasRefreshToken bool   `json:"has_refresh_token"`
}

func (a *API) SignInStatus(w http.ResponseWriter, r *http.Request) error {
	return answer(w, http.StatusOK, signInStatusJSON(a.service.SignIn.Status()), nil)
}

func (a *API) SignOut(w http.ResponseWriter, r *http.Request) error {
	status, err := a.service.SignIn.SignOut(r.Context())
	return answer(w, http.StatusOK, signInStatusJSON(status), err)
}
