// Package web holds what all our HTTP servers share: the guards in front of all routes, request info, access log,
// limits, decoding, and how responses and errors are written. It must know neither routes nor rules of the gateway.
package web

import (
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"
)

// PathParam returns a decoded path parameter. chi matches the escaped path where that differs from the default escaping
// ("a%2Fb"), and the plain path otherwise ("50%").
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
