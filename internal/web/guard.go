package web

import "net/http"

// Guard refuses, before any other handler runs, requests for a foreign host name (DNS rebinding would make a hostile
// page same-origin), writes from another origin, and subresources loaded by another site: only navigations may come
// from there. Refusals are 403 in plain text.
func Guard(allowedHosts []string) func(http.Handler) http.Handler {
	allowed := hostSet(allowedHosts)
	crossOrigin := http.NewCrossOriginProtection() // no bypass patterns, ever
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			header := w.Header()
			header["X-Content-Type-Options"], header["Cross-Origin-Resource-Policy"] = noSniff, sameOrigin
			if !allowed.has(r.Host) {
				Plain(w, http.StatusForbidden, "this host name is not served here; allow it with --allow-host")
				return
			}
			foreign := r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate"
			if foreign || crossOrigin.Check(r) != nil {
				Plain(w, http.StatusForbidden, "cross-origin request refused")
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// Headers that never change.
var (
	noSniff    = []string{"nosniff"}
	sameOrigin = []string{"same-origin"}
)
