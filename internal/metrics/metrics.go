// Package metrics counts what a gateway does, for Prometheus.
package metrics

import (
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"switchyard/internal/domain"
)

var (
	// requestBuckets are in seconds, from small responses to held ones; lagBuckets up to the events of a project that was
	// away.
	requestBuckets = []float64{0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30, 60}
	lagBuckets     = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600}
)

// Counts are a gateway's counters since its start. They are safe for concurrent use.
type Counts struct {
	// Follows reports whether this gateway reads the project's feed; nil if it reads all. It must be set before Handler is
	// called.
	Follows func(project string) bool

	registry          *prometheus.Registry
	inFlight, streams prometheus.Gauge
	requests          *prometheus.CounterVec
	durations         *prometheus.HistogramVec
	events, messages  *prometheus.CounterVec
	lag               prometheus.Histogram
	dropped           prometheus.Counter

	perProject    bool
	calls, failed *prometheus.CounterVec
	mu            sync.Mutex
	up            map[call]bool // whether the last one succeeded
}

// call is a project and the kind of a call: "pipeline" or "feed".
type call struct{ project, kind string }

// New returns Counts that are all zero, with series for each project if perProject is set.
func New(perProject bool) *Counts {
	c := &Counts{registry: prometheus.NewRegistry(), perProject: perProject, up: map[call]bool{}}
	live := collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile("^/gc/heap/live:bytes$")} // without garbage
	c.registry.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(live)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	with := promauto.With(c.registry)
	gauge := func(name, help string) prometheus.Gauge {
		return with.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return with.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	c.inFlight = gauge("switchyard_http_requests_in_flight", "Requests being served, including this one and held ones.")
	c.streams = gauge("switchyard_open_streams", "Readers of the merged stream through server-sent events.")
	c.requests = counter("switchyard_http_requests_total", "Requests answered, by route, method and status.",
		"route", "method", "status")
	c.durations = with.NewHistogramVec(prometheus.HistogramOpts{
		Name: "switchyard_http_request_duration_seconds", Help: "Duration of requests in seconds, by route.",
		Buckets: requestBuckets,
	}, []string{"route"})
	c.events = counter("switchyard_events_total",
		"Events stored by this gateway since its start, by type; types that are not Switchyard's own are counted as other.",
		"type")
	c.lag = with.NewHistogram(prometheus.HistogramOpts{
		Name: "switchyard_stream_lag_seconds",
		Help: "Time from an event at its project to its arrival here, by their clocks.", Buckets: lagBuckets,
	})
	c.messages = counter("switchyard_bot_messages_total",
		"Messages about events, by whether the room accepted or refused them.", "result")
	c.messages.WithLabelValues("sent")
	c.messages.WithLabelValues("refused")
	c.dropped = with.NewCounter(prometheus.CounterOpts{
		Name: "switchyard_usage_records_dropped_total",
		Help: "Records of calls of models that were dropped, since what they say cannot be.",
	})
	labels := []string{"kind"}
	if perProject {
		labels = []string{"kind", "project"}
	}
	c.calls = counter("switchyard_upstream_calls_total", "Calls of project servers, by kind.", labels...)
	c.failed = counter("switchyard_upstream_failures_total", "Calls of project servers that failed.", labels...)
	return c
}

// StreamOpened counts a reader of the stream until closed is called.
func (c *Counts) StreamOpened() (closed func()) {
	c.streams.Inc()
	return c.streams.Dec
}

// Events counts events that were stored. Types that pages do not offer share a series, since projects choose them
// freely.
func (c *Counts) Events(added []domain.Event) {
	for _, e := range added {
		label := "other"
		if e.Type.Kind().Choice != "" {
			label = string(e.Type)
		}
		c.events.WithLabelValues(label).Inc()
		c.lag.Observe(max(0, e.ReceivedAt.Sub(e.At).Seconds()))
	}
}

// UsageDropped counts records of calls of models that were dropped.
func (c *Counts) UsageDropped(n int) { c.dropped.Add(float64(n)) }

func (c *Counts) BotMessage(refused bool) {
	result := "sent"
	if refused {
		result = "refused"
	}
	c.messages.WithLabelValues(result).Inc()
}

func (c *Counts) RequestBegan() { c.inFlight.Inc() }

// RequestEnded counts a completed request, of the route "none" if there is none.
func (c *Counts) RequestEnded(route, method string, status int, took time.Duration) {
	c.inFlight.Dec()
	if route == "" {
		route = "none"
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		method = "other" // clients cannot create series
	}
	c.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	c.durations.WithLabelValues(route).Observe(took.Seconds())
}

// Call counts a completed call to a project server, by its kind and result.
func (c *Counts) Call(project, kind string, err error) {
	labels := []string{kind}
	if c.perProject {
		labels = append(labels, project)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up[call{project, kind}] = err == nil
	c.calls.WithLabelValues(labels...).Inc()
	if failed := c.failed.WithLabelValues(labels...); err != nil {
		failed.Inc()
	}
}

// Handler returns a handler that shows all counters, those of projects only for registered ones, and the values of a
// scrape.
func (c *Counts) Handler(registered *domain.Registry, more Scrape) http.Handler {
	c.forget(registered)
	scrape := prometheus.NewRegistry()
	scrape.MustRegister(more, Scrape(c.showCalls))
	return promhttp.HandlerFor(prometheus.Gatherers{c.registry, scrape}, promhttp.HandlerOpts{})
}

// forget forgets projects that are no longer registered or whose feeds other gateways read now.
func (c *Counts) forget(registered *domain.Registry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.up {
		_, found := registered.Find(k.project)
		if found && (k.kind != "feed" || c.Follows == nil || c.Follows(k.project)) {
			continue
		}
		delete(c.up, k)
		if c.perProject {
			c.calls.DeleteLabelValues(k.kind, k.project)
			c.failed.DeleteLabelValues(k.kind, k.project)
		}
	}
}

func (c *Counts) showCalls(show Show) {
	c.mu.Lock()
	defer c.mu.Unlock()
	up, all := map[string]int{}, map[string]int{}
	for k, succeeded := range c.up {
		all[k.kind]++
		if succeeded {
			up[k.kind]++
		}
		if c.perProject {
			show("switchyard_upstream_up", "Whether the last call of a project server succeeded.", Bool(succeeded),
				"kind", k.kind, "project", k.project)
		}
	}
	for _, kind := range []string{"feed", "pipeline"} {
		const name, help = "switchyard_upstream_projects", "Projects by the kind and the result of the last call."
		show(name, help, float64(up[kind]), "kind", kind, "state", "up")
		show(name, help, float64(all[kind]-up[kind]), "kind", kind, "state", "down")
	}
}

// Show shows a gauge. Labels are alternating names and values.
type Show func(name, help string, value float64, labels ...string)

// Scrape shows values that are read on demand.
type Scrape func(show Show)

// Describe describes nothing: which values there are depends on the gateway's state.
func (s Scrape) Describe(chan<- *prometheus.Desc) {}

func (s Scrape) Collect(to chan<- prometheus.Metric) {
	s(func(name, help string, value float64, labels ...string) {
		var names, values []string
		for i := 0; i < len(labels); i += 2 {
			names, values = append(names, labels[i]), append(values, labels[i+1])
		}
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), prometheus.GaugeValue, value,
			values...)
	})
}

func Bool(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
