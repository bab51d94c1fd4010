package web

import (
	"net/http"
)

// Guard refuses, before anything else sees a request, one that came under a foreign host name (a rebound name
// would make a hostile page same-origin) and a write from another origin. Both answers are 403, plain text.
func Guard(allowedHosts []string) func(http.Handler) http.Handler {
	allowed := hostSet(allowedHosts)
	crossOrigin := http.NewCrossOriginProtection() // no bypass patterns, ever
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header()["X-Content-Type-Options"] = noSniff
			if !allowed.has(r.Host) {
				Plain(w, http.StatusForbidden, "this host name is not served here; allow it with --allow-host")
				return
			}
			if crossOrigin.Check(r) != nil {
				Plain(w, http.StatusForbidden, "cross-origin request refused")
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

var noSniff = []string{"nosniff"} // never changes
