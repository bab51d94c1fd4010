package main

import (
	"fmt"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// rounds is the number of adjacent pairs of which a ratio is the median; each half of a pair lasts roundTime.
const (
	rounds    = 9
	roundTime = 700 * time.Millisecond
)

// serveBare answers each path /N.json with the bytes of that file of dir, with nothing but net/http: the library's own
// cost is a limit that no handler can beat.
func serveBare(address, dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	media := []string{mime.TypeByExtension(".json")}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "0") })
	for _, name := range names {
		body, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		length := []string{strconv.Itoa(len(body))}
		mux.HandleFunc("/"+filepath.Base(name), func(w http.ResponseWriter, r *http.Request) {
			header := w.Header()
			header["Content-Type"], header["Content-Length"] = media, length
			_, _ = w.Write(body)
		})
	}
	server := http.Server{Addr: address, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, Handler: mux}
	return server.ListenAndServe()
}

// compared is a path whose answers are compared with the same bytes from net/http alone.
type compared struct {
	what string
	path string
	rate float64 // the least share of its requests
	cpu  float64 // or the most of its CPU time for each
}

// compare measures each path pair by pair: ours, then net/http alone with the same bytes.
func compare(ours *process, cases []compared) ([]row, error) {
	dir, err := os.MkdirTemp(workDir, "bare-")
	if err != nil {
		return nil, err
	}
	for i, c := range cases {
		body, _, err := get(ours.url() + c.path)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.json", i)), body, 0o600); err != nil {
			return nil, err
		}
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	bare, _, err := start(program, "-bare", dir)
	if err != nil {
		return nil, err
	}
	defer bare.stop()
	var table []row
	for i, c := range cases {
		var rates, costs, cpu []float64
		for range rounds {
			rate, each, err := loadOf(ours, c.path)
			if err != nil {
				return nil, err
			}
			bareRate, bareEach, err := loadOf(bare, fmt.Sprintf("/%d.json", i))
			if err != nil {
				return nil, err
			}
			rates, costs, cpu = append(rates, rate/bareRate), append(costs, each/bareEach), append(cpu, each)
		}
		r := row{what: c.what}
		r.measured = fmt.Sprintf("%.2f of the requests, %.2f of the CPU of net/http alone, %.0f µs a request",
			median(rates), median(costs), median(cpu))
		if c.rate > 0 {
			r.goal, r.met = fmt.Sprintf("≥ %.2f of its requests", c.rate), median(rates) >= c.rate
		} else {
			r.goal, r.met = fmt.Sprintf("≤ %.2f of its CPU", c.cpu), median(costs) <= c.cpu
		}
		table = append(table, r)
	}
	return table, nil
}

// loadOf returns how many answers a second a process gives, and its CPU time for each, in µs.
func loadOf(p *process, path string) (rate, each float64, err error) {
	used := cpuTime(p.pid())
	rate, err = load(p.address, path, roundTime)
	return rate, float64((cpuTime(p.pid()) - used).Microseconds()) / (rate * roundTime.Seconds()), err
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
