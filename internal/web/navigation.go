package web

import "net/http"

// NavigationOnly keeps an address that changes something though it is only read for people who go there: no image, frame
// or script may load it, and from another site only a navigation may. Caches keep nothing of it.
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

// SecretAddress is for addresses that hold a secret: browsers tell no other site where they came from, and no page repeats it.
func SecretAddress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		InfoOf(r.Context()).SecretAddress = true
		w.Header().Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}

// isNavigation goes by Fetch Metadata. What sends none, such as curl or an old browser, passes.
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
