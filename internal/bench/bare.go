package main

import (
	"fmt"
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

// compareBare measures the CPU time of a gateway's small answer against that of serveBare, pair by pair.
func compareBare(gateway *process) (row, error) {
	program, err := os.Executable()
	if err != nil {
		return row{}, err
	}
	bare, _, err := start(program)
	if err != nil {
		return row{}, err
	}
	defer bare.stop()
	const path = "/gateway/mode"
	var ratios, cpu []float64
	for range rounds {
		_, ours, err := loadOf(gateway, path)
		if err != nil {
			return row{}, err
		}
		_, theirs, err := loadOf(bare, path)
		if err != nil {
			return row{}, err
		}
		ratios, cpu = append(ratios, ours/theirs), append(cpu, ours)
	}
	ratio := median(ratios)
	return row{
		"small JSON (`" + path + "`)",
		fmt.Sprintf("%.2f of the CPU of net/http alone, %.0f µs a request", ratio, median(cpu)),
		"≤ 1.40 of net/http alone", ratio <= 1.4,
	}, nil
}
