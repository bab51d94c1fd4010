package handlers

import (
	"net/http"

	"switchyard/views"
)

// signInStatusJSON is what the API says of the stored credentials.
type signInStatusJSON struct {
	Authenticated   bool   `json:"authenticated"`
	Expired         bool   `json:"expired"`
	ExpiresAt       uint64 `json:"expires_at"` // Unix milliseconds
	HasRefreshToken bool   `json:"has_refresh_token"`
}

// signInStatus reports whether there are credentials, and whether they still hold.
func (g *gateway) signInStatus(w http.ResponseWriter, r *http.Request) error {
	writeJSON(w, http.StatusOK, signInStatusJSON(g.Service.SignIn.Status()))
	return nil
}

// signOut removes the credentials and reports the status that follows.
func (g *gateway) signOut(w http.ResponseWriter, r *http.Request) error {
	status, err := g.Service.SignIn.SignOut(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, signInStatusJSON(status))
	return nil
}

// isCallback reports whether path is where the identity provider sends browsers back to. Its address holds a code.
func isCallback(path string) bool { return path == "/callback" || path == "/oauth/callback" }

// startsSignIn reports whether going to path adds a flow to those that wait for their callback, which no time removes.
func startsSignIn(path string) bool { return path == views.SignInURL || path == views.SignInByHandURL }

// navigationOnly keeps the addresses of the sign-in, which change something though they are only read, for people who go
// there: no image, frame or script may load them, and from another site only a navigation may. Nothing of them is kept by
// caches, and no address with a code leaves as a referrer.
func navigationOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if callback := isCallback(r.URL.Path); callback || startsSignIn(r.URL.Path) {
			w.Header().Set("Cache-Control", "no-store")
			if callback {
				w.Header().Set("Referrer-Policy", "no-referrer")
			}
			if !isNavigation(r.Header) {
				plainForm(w, http.StatusForbidden, "this address is for browsers to go to, not for pages to load")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// isNavigation judges by Fetch Metadata. What sends none, such as curl or an old browser, passes.
func isNavigation(header http.Header) bool {
	if to := header.Get("Sec-Fetch-Dest"); to != "" && to != "document" {
		return false
	}
	switch header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return header.Get("Sec-Fetch-Mode") == "navigate"
}
