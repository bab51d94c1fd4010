package handlers

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"switchyard/internal/domain"
)

// Metrics counts what a gateway does, for GET /metrics.
type Metrics struct {
	inFlight atomic.Int64 // requests in their handlers

	mu        sync.Mutex
	requests  map[requestKey]uint64
	durations map[string]*histogram // by route
	calls     map[callKey]*calls
}

type requestKey struct {
	route, method string
	status        int
}

// callKey names what was asked of which project: "pipeline" or "feed".
type callKey struct{ project, kind string }

type calls struct {
	all, failed uint64
	up          bool // how the last one ended
}

// NewMetrics returns Metrics with nothing counted.
func NewMetrics() *Metrics {
	return &Metrics{
		requests:  map[requestKey]uint64{},
		durations: map[string]*histogram{},
		calls:     map[callKey]*calls{},
	}
}

// request counts an answered request. Paths without a route and unusual methods share a label each, so that callers
// cannot make series.
func (m *Metrics) request(route, method string, status int, took time.Duration) {
	route = cmp.Or(route, "none")
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete:
	default:
		method = "other"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[requestKey{route, method, status}]++
	durations := m.durations[route]
	if durations == nil {
		durations = &histogram{}
		m.durations[route] = durations
	}
	durations.add(took.Seconds())
}

// bucketLimits are the upper ends of a histogram's buckets, in seconds: from a small answer to one that is held.
var bucketLimits = [...]float64{0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30, 60}

// histogram is one of Prometheus' kind. Those of the metrics package have other buckets, which only VictoriaMetrics reads.
type histogram struct {
	counts [len(bucketLimits) + 1]uint64 // not cumulative; the last is of what is above all limits
	sum    float64
}

func (h *histogram) add(value float64) {
	bucket, _ := slices.BinarySearch(bucketLimits[:], value)
	h.counts[bucket]++
	h.sum += value
}

func (h *histogram) write(w io.Writer, name string, labels ...string) {
	below := uint64(0)
	for i, count := range h.counts {
		limit := "+Inf"
		if i < len(bucketLimits) {
			limit = strconv.FormatFloat(bucketLimits[i], 'g', -1, 64)
		}
		below += count
		metrics.WriteCounterUint64(w, series(name+"_bucket", append(labels, "le", limit)...), below)
	}
	metrics.WriteCounterFloat64(w, series(name+"_sum", labels...), h.sum)
	metrics.WriteCounterUint64(w, series(name+"_count", labels...), below)
}

// Call counts a call of a project server that has ended: what was asked, and how it went.
func (m *Metrics) Call(project, kind string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.calls[callKey{project, kind}]
	if c == nil {
		c = &calls{}
		m.calls[callKey{project, kind}] = c
	}
	c.all++
	if c.up = err == nil; !c.up {
		c.failed++
	}
}

// write writes what was counted, of projects only those that there still are. The series of a metric stand together.
func (m *Metrics) write(w io.Writer, registry *domain.Registry) {
	gauge(w, "switchyard_http_requests_in_flight", uint64(m.inFlight.Load()))
	m.mu.Lock()
	defer m.mu.Unlock()
	declare(w, "switchyard_http_requests_total", "counter")
	for _, k := range slices.SortedFunc(maps.Keys(m.requests), func(a, b requestKey) int {
		return cmp.Or(cmp.Compare(a.route, b.route), cmp.Compare(a.method, b.method), cmp.Compare(a.status, b.status))
	}) {
		name := series("switchyard_http_requests_total", "route", k.route, "method", k.method, "status", strconv.Itoa(k.status))
		metrics.WriteCounterUint64(w, name, m.requests[k])
	}
	declare(w, "switchyard_http_request_duration_seconds", "histogram")
	for _, route := range slices.Sorted(maps.Keys(m.durations)) {
		m.durations[route].write(w, "switchyard_http_request_duration_seconds", "route", route)
	}
	m.writeCalls(w, registry)
}

// writeCalls writes what is known of calls. Callers hold mu.
func (m *Metrics) writeCalls(w io.Writer, registry *domain.Registry) {
	maps.DeleteFunc(m.calls, func(k callKey, _ *calls) bool {
		_, found := registry.Find(k.project)
		return !found
	})
	keys := slices.SortedFunc(maps.Keys(m.calls), func(a, b callKey) int {
		return cmp.Or(cmp.Compare(a.project, b.project), cmp.Compare(a.kind, b.kind))
	})
	for _, metric := range []struct {
		name, kind string
		value      func(*calls) uint64
	}{
		{"switchyard_upstream_calls_total", "counter", func(c *calls) uint64 { return c.all }},
		{"switchyard_upstream_failures_total", "counter", func(c *calls) uint64 { return c.failed }},
		{"switchyard_upstream_up", "gauge", func(c *calls) uint64 { return number(c.up) }},
	} {
		declare(w, metric.name, metric.kind)
		for _, k := range keys {
			metrics.WriteGaugeUint64(w, series(metric.name, "project", k.project, "kind", k.kind), metric.value(m.calls[k]))
		}
	}
}

// metrics writes the counted things and the state of the parts, in Prometheus' text form.
func (g *gateway) metrics(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	registry := g.Service.Projects.Registry()
	g.Metrics.write(w, registry)
	gauge(w, "switchyard_projects", uint64(len(registry.Projects)))
	gauge(w, "switchyard_stream_last_event_id", uint64(g.Service.Events.LastID()))
	if lag, ok := g.streamLag(r); ok {
		declare(w, "switchyard_stream_lag_seconds", "gauge")
		metrics.WriteGaugeFloat64(w, "switchyard_stream_lag_seconds", lag.Seconds())
	}
	g.writeAgents(w)
	bot := g.Service.Bot.Status()
	declare(w, "switchyard_bot_state", "gauge")
	for _, state := range []domain.BotState{domain.BotOff, domain.BotConnecting, domain.BotConnected, domain.BotFailed} {
		metrics.WriteGaugeUint64(w, series("switchyard_bot_state", "state", string(state)), number(bot.State == state))
	}
	gauge(w, "switchyard_store_up", number(g.Service.Ready(r.Context()) == nil))
	metrics.WriteProcessMetrics(w)
}

// streamLag is the time from the newest event of the merged stream to its arrival here, by the clocks of its project and
// of this machine.
func (g *gateway) streamLag(r *http.Request) (lag time.Duration, ok bool) {
	page, err := g.Service.Events.Page(r.Context(), domain.EventQuery{Backward: true, Limit: 1})
	if err != nil || len(page.Events) == 0 {
		return 0, false
	}
	return time.Duration(max(0, page.Events[0].ReceivedAtMS-page.Events[0].TimestampMS)) * time.Millisecond, true
}

func (g *gateway) writeAgents(w io.Writer) {
	states, presences := map[domain.AgentState]uint64{}, map[domain.AgentPresence]uint64{}
	for _, a := range g.Service.Agents.All() {
		presences[a.Presence]++
		if a.Presence == domain.AgentAlive {
			states[a.State]++
		}
	}
	declare(w, "switchyard_agents", "gauge")
	for _, p := range []domain.AgentPresence{domain.AgentAlive, domain.AgentLeft, domain.AgentLost} {
		metrics.WriteGaugeUint64(w, series("switchyard_agents", "presence", string(p)), presences[p])
	}
	declare(w, "switchyard_agents_alive", "gauge")
	for _, s := range []domain.AgentState{domain.AgentIdle, domain.AgentRunning, domain.AgentFailed} {
		metrics.WriteGaugeUint64(w, series("switchyard_agents_alive", "state", string(s)), states[s])
	}
}

// declare says of what kind the metric is whose series follow.
func declare(w io.Writer, name, kind string) { fmt.Fprintf(w, "# TYPE %s %s\n", name, kind) }

// gauge writes a metric that has no labels.
func gauge(w io.Writer, name string, value uint64) {
	declare(w, name, "gauge")
	metrics.WriteGaugeUint64(w, name, value)
}

// labelEscapes are those of Prometheus' text form.
var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// series is a metric's name with labels, given as name, value, ….
func series(name string, labels ...string) string {
	var b strings.Builder
	for i := 0; i < len(labels); i += 2 {
		separator := ","
		if i == 0 {
			separator = name + "{"
		}
		fmt.Fprintf(&b, `%s%s="%s"`, separator, labels[i], labelEscapes.Replace(labels[i+1]))
	}
	return b.String() + "}"
}

func number(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
