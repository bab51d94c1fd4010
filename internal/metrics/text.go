package metrics

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Text is a response in Prometheus' text format. The samples of a metric must immediately follow its Metric.
type Text struct{ b bytes.Buffer }

// Bytes returns the text written so far.
func (t *Text) Bytes() []byte { return t.b.Bytes() }

// Metric begins a metric. kind is counter, gauge or histogram.
func (t *Text) Metric(name, kind, help string) {
	fmt.Fprintf(&t.b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// labelEscapes escapes label values.
var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Sample writes a value. labels are alternating names and values.
func (t *Text) Sample(name string, value float64, labels ...string) {
	t.b.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		separator := ","
		if i == 0 {
			separator = "{"
		}
		fmt.Fprintf(&t.b, `%s%s="%s"`, separator, labels[i], labelEscapes.Replace(labels[i+1]))
	}
	if len(labels) > 0 {
		t.b.WriteByte('}')
	}
	fmt.Fprintf(&t.b, " %s\n", strconv.FormatFloat(value, 'g', -1, 64))
}

// Gauge writes a gauge without labels.
func (t *Text) Gauge(name, help string, value float64) {
	t.Metric(name, "gauge", help)
	t.Sample(name, value)
}

// Counter writes a counter without labels.
func (t *Text) Counter(name, help string, value float64) {
	t.Metric(name, "counter", help)
	t.Sample(name, value)
}

// States writes a gauge that is 1 for the current state and 0 for the others.
func States[S ~string](t *Text, name, help string, holds S, states ...S) {
	t.Metric(name, "gauge", help)
	for _, state := range states {
		t.Sample(name, Bool(state == holds), "state", string(state))
	}
}

// Bool returns 1 or 0.
func Bool(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
