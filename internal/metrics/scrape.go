package metrics

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// Show shows a gauge. Labels are alternating names and values.
type Show func(name, help string, value float64, labels ...string)

// Scrape shows values that are read when they are asked for.
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

// Build shows the program's version, its commit if known, and Go's version.
func (show Show) Build(version string) {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	show("switchyard_build_info", "Always 1; the labels are the version, revision and Go version.", 1,
		"version", version, "revision", revision, "goversion", runtime.Version())
}

// States shows a gauge that is 1 for the current state and 0 for the others.
func States[S ~string](show Show, name, help string, holds S, states ...S) {
	for _, state := range states {
		show(name, help, Bool(state == holds), "state", string(state))
	}
}

// Bool returns 1 or 0.
func Bool(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
