package main

import (
	"net/http"
	"os"
	"strconv"
	"time"
)

// serveBare answers every request like /gateway/mode of a gateway, with nothing but net/http: the library's own cost is
// a limit that no handler can beat.
func serveBare(address string) error {
	body := []byte(`{"mode":"gateway"}`)
	media, length := []string{"application/json"}, []string{strconv.Itoa(len(body))}
	server := http.Server{
		Addr: address, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			header := w.Header()
			header["Content-Type"], header["Content-Length"] = media, length
			_, _ = w.Write(body)
		}),
	}
	return server.ListenAndServe()
}

// measureBare measures serveBare, for comparison.
func measureBare(string) ([]row, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	server, _, err := start(program)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	return serveSame(server, []compared{{what: "for comparison: small JSON by net/http alone", path: "/gateway/mode"}})
}
