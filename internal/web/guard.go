package web

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
)

// Guard refuses, before any other handler runs, requests for a foreign host name (DNS rebinding would make a hostile
// page same-origin), writes from another origin, and subresources loaded by another site: only navigations may come
// from there. Refusals are 403 in plain text.
func Guard(allowedHosts []string) func(http.Handler) http.Handler {
	allowed := hostSet(allowedHosts)
	crossOrigin := http.NewCrossOriginProtection() // no bypass patterns, ever
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
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

// hosts is the set of names, in lower case, that the server answers to besides IP addresses and localhost.
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

// has reports whether a Host header names this server, with or without a port.
func (h hosts) has(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || h[host] {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}

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
