package web

import "net/http"

// Guard refuses, before anything else sees a request, one that came under a foreign host name (a rebound name
// would make a hostile page same-origin), a write from another origin, and what a page of another site loads: only
// people may come from there. The answers are 403, plain text.
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
			if crossOrigin.Check(r) != nil || r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
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
