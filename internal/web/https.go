package web

import (
	"net/http"
	"strings"
)

// CameByHTTPS reports what a proxy says, or whoever pretends to be one: only the form of cookies and of shown addresses depends on it.
func CameByHTTPS(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return r.TLS != nil || strings.EqualFold(strings.TrimSpace(first), "https")
}
