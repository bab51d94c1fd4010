// Package web is what every HTTP server of ours shares: the guards in front of all routes, request info and access
// log, limits, decoding, and the forms of answers and refusals. It knows no routes and no rules of the gateway.
package web

import (
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"
)

// PathParam returns a parameter of the path, decoded. chi matches the escaped path where that differs from the default
// escaping of the plain one ("a%2Fb"), and the plain one otherwise ("50%").
func PathParam(r *http.Request, name string) string {
	value := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return value
	}
	plain, err := url.PathUnescape(value)
	if err != nil { // net/http has parsed the whole path already
		return value
	}
	return plain
}
