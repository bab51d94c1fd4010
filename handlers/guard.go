package handlers

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
)

// guard refuses, before anything else sees a request, one that came under a foreign host name (a rebound name
// would make a hostile page same-origin) and a write from another origin. Both answers are 403, plain text.
func guard(allowedHosts []string, next http.Handler) http.Handler {
	allowed := hostSet(allowedHosts)
	crossOrigin := http.NewCrossOriginProtection() // no bypass patterns, ever
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Content-Type-Options"] = noSniff
		if !allowed.has(r.Host) {
			plainForm(w, http.StatusForbidden, "this host name is not served here; allow it with --allow-host")
			return
		}
		if crossOrigin.Check(r) != nil {
			plainForm(w, http.StatusForbidden, "cross-origin request refused")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// setPageHeaders sets what browsers must know of pages, and of what pages load. JSON and plain text do without: no browser
// takes them for pages, and these are half of a small answer's bytes.
func setPageHeaders(header http.Header) {
	if header["Referrer-Policy"] == nil { // some addresses must not be told at all
		header["Referrer-Policy"] = sameOrigin
	}
	header["Content-Security-Policy"] = contentPolicy
}

// Headers that never change, as jsonMedia in handler.go.
var (
	noSniff       = []string{"nosniff"}
	sameOrigin    = []string{"same-origin"}
	contentPolicy = []string{contentSecurityPolicy}
)

// contentSecurityPolicy holds for every page: scripts, styles and calls come from this origin only, nothing is
// inline, nobody frames the console.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// hosts are the names, in lower case, under which the server answers besides IP literals and localhost.
type hosts map[string]bool

func hostSet(names []string) hosts {
	set := hosts{}
	for _, name := range names {
		set[strings.ToLower(strings.TrimSuffix(name, "."))] = true
	}
	if own, err := os.Hostname(); err == nil && own != "" {
		set[strings.ToLower(own)] = true
	}
	return set
}

// has reports whether a Host header names us, with any port.
func (h hosts) has(host string) bool {
	if strings.Contains(host, ":") { // else there is no port, and saying so would take an allocation
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || h[host] {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}
