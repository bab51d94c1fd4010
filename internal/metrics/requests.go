package metrics

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

type requestKey struct {
	route, method string
	status        int
}

func compareRequests(a, b requestKey) int {
	return cmp.Or(cmp.Compare(a.route, b.route), cmp.Compare(a.method, b.method), cmp.Compare(a.status, b.status))
}

// RequestBegan counts a request as in flight until RequestEnded.
func (c *Counts) RequestBegan() { c.inFlight.Add(1) }

// RequestEnded counts a completed request. Paths without a route and unusual methods each share a label, so that clients cannot
// create series.
func (c *Counts) RequestEnded(route, method string, status int, took time.Duration) {
	c.inFlight.Add(-1)
	route = cmp.Or(route, "none")
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		method = "other"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[requestKey{route, method, status}]++
	durations := c.durations[route]
	if durations == nil {
		durations = &histogram{}
		c.durations[route] = durations
	}
	durations.add(took.Seconds())
}

// writeRequests writes the metrics of requests. The caller holds mu.
func (c *Counts) writeRequests(t *Text) {
	t.Gauge("switchyard_http_requests_in_flight", "Requests being served, including this one and held ones.", float64(c.inFlight.Load()))
	t.Gauge("switchyard_open_streams", "Readers of the merged stream through server-sent events.", float64(c.streams.Load()))
	name := "switchyard_http_requests_total"
	t.Metric(name, "counter", "Requests answered, by route, method and status.")
	for _, k := range slices.SortedFunc(maps.Keys(c.requests), compareRequests) {
		t.Sample(name, float64(c.requests[k]), "route", k.route, "method", k.method, "status", strconv.Itoa(k.status))
	}
	name = "switchyard_http_request_duration_seconds"
	t.Metric(name, "histogram", "Duration of requests in seconds, by route.")
	for _, route := range slices.Sorted(maps.Keys(c.durations)) {
		c.durations[route].write(t, name, "route", route)
	}
}
