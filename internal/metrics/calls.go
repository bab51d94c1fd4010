package metrics

import (
	"cmp"
	"maps"
	"slices"

	"switchyard/internal/domain"
)

// callKey names what was asked of which project: "pipeline" or "feed".
type callKey struct{ project, kind string }

func compareCalls(a, b callKey) int {
	return cmp.Or(cmp.Compare(a.project, b.project), cmp.Compare(a.kind, b.kind))
}

type calls struct {
	all, failed uint64
	up          bool // how the last one ended
}

// Call counts a call of a project server that has ended: what was asked, and how it went.
func (c *Counts) Call(project, kind string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.calls[callKey{project, kind}]
	if of == nil {
		of = &calls{}
		c.calls[callKey{project, kind}] = of
	}
	of.all++
	if of.up = err == nil; !of.up {
		of.failed++
	}
}

// callMetrics are what is told of the calls of each project.
var callMetrics = []struct {
	name, kind, help string
	value            func(*calls) float64
}{
	{"switchyard_upstream_calls_total", "counter", "Calls of project servers, by project and what was asked.", func(c *calls) float64 { return float64(c.all) }},
	{"switchyard_upstream_failures_total", "counter", "Calls of project servers that failed.", func(c *calls) float64 { return float64(c.failed) }},
	{"switchyard_upstream_up", "gauge", "Whether the last call of a project server went well.", func(c *calls) float64 { return Bool(c.up) }},
}

// writeCalls writes what is known of calls, and forgets those of projects that are no longer registered. Callers hold mu.
func (c *Counts) writeCalls(t *Text, registry *domain.Registry) {
	maps.DeleteFunc(c.calls, func(k callKey, _ *calls) bool {
		_, found := registry.Find(k.project)
		return !found
	})
	keys := slices.SortedFunc(maps.Keys(c.calls), compareCalls)
	for _, metric := range callMetrics {
		t.Metric(metric.name, metric.kind, metric.help)
		for _, k := range keys {
			t.Sample(metric.name, metric.value(c.calls[k]), "project", k.project, "kind", k.kind)
		}
	}
}
