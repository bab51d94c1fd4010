package web

import "net/http"

// NavigationOnly protects a GET route that has side effects: a browser may navigate to it, even from another site, but
// no image, frame or script may load it. Responses are not cached.
func NavigationOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Cache-Control"] = NoStore
		if !isNavigation(r.Header) {
			Plain(w, http.StatusForbidden, "this address is for browsers to go to, not for pages to load")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// SecretAddress is for routes whose address holds a secret: browsers send it to no other site as Referer, and no page
// repeats it.
func SecretAddress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		InfoOf(r.Context()).SecretAddress = true
		w.Header().Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}

// isNavigation checks the Fetch Metadata headers. Clients that send none, such as curl or an old browser, pass.
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
