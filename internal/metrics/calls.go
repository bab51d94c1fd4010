package metrics

import (
	"cmp"
	"maps"
	"slices"

	"switchyard/internal/domain"
)

// callKey is a project and the kind of a call: "pipeline" or "feed".
type callKey struct{ project, kind string }

func compareCalls(a, b callKey) int {
	return cmp.Or(cmp.Compare(a.project, b.project), cmp.Compare(a.kind, b.kind))
}

type calls struct {
	all, failed uint64
	up          bool // whether the last one succeeded
}

func (c *calls) add(err error) {
	c.all++
	if c.up = err == nil; !c.up {
		c.failed++
	}
}

// Call counts a completed call of a project server, by its kind and result.
func (c *Counts) Call(project, kind string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of(c.calls, callKey{project, kind}).add(err)
	of(c.totals, callKey{kind: kind}).add(err)
}

func of(counted map[callKey]*calls, k callKey) *calls {
	found := counted[k]
	if found == nil {
		found = &calls{}
		counted[k] = found
	}
	return found
}

// writeCalls writes the metrics of calls, and forgets projects that are no longer registered or whose feeds other gateways read
// now. The caller holds mu.
func (c *Counts) writeCalls(t *Text, registry *domain.Registry) {
	maps.DeleteFunc(c.calls, func(k callKey, _ *calls) bool {
		_, found := registry.Find(k.project)
		return !found || k.kind == "feed" && c.Follows != nil && !c.Follows(k.project)
	})
	counted := c.totals
	if c.PerProject {
		counted = c.calls
	}
	keys := slices.SortedFunc(maps.Keys(counted), compareCalls)
	for _, metric := range []struct {
		name, kind, help string
		value            func(*calls) float64
		each             bool // only meaningful for a single project
	}{
		{"switchyard_upstream_calls_total", "counter", "Calls of project servers, by kind.", func(c *calls) float64 { return float64(c.all) }, false},
		{"switchyard_upstream_failures_total", "counter", "Calls of project servers that failed.", func(c *calls) float64 { return float64(c.failed) }, false},
		{"switchyard_upstream_up", "gauge", "Whether the last call of a project server succeeded.", func(c *calls) float64 { return Bool(c.up) }, true},
	} {
		if metric.each && !c.PerProject {
			continue
		}
		t.Metric(metric.name, metric.kind, metric.help)
		for _, k := range keys {
			labels := []string{"kind", k.kind}
			if c.PerProject {
				labels = []string{"project", k.project, "kind", k.kind}
			}
			t.Sample(metric.name, metric.value(counted[k]), labels...)
		}
	}
	c.writeUp(t)
}

// writeUp writes how many projects' last calls succeeded and failed. The caller holds mu.
func (c *Counts) writeUp(t *Text) {
	up, down := map[string]int{}, map[string]int{}
	for k, calls := range c.calls {
		if calls.up {
			up[k.kind]++
		} else {
			down[k.kind]++
		}
	}
	name := "switchyard_upstream_projects"
	t.Metric(name, "gauge", "Projects by the kind and the result of the last call.")
	for _, k := range slices.SortedFunc(maps.Keys(c.totals), compareCalls) {
		t.Sample(name, float64(up[k.kind]), "kind", k.kind, "state", "up")
		t.Sample(name, float64(down[k.kind]), "kind", k.kind, "state", "down")
	}
}
