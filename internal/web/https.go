package web

import (
	"net/http"
	"strings"
)

// CameByHTTPS reports whether the client used HTTPS, possibly to a proxy. Any client can forge X-Forwarded-Proto, so
// only the Secure attribute of cookies and the scheme of displayed addresses may depend on it.
func CameByHTTPS(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return r.TLS != nil || strings.EqualFold(strings.TrimSpace(first), "https")
}
