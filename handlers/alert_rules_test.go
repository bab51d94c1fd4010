package handlers_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/metrics"
	"switchyard/internal/service"
)

// TestTheAlertRulesAreAboutMetricsThatExist: those of docs/operating.md, with their labels.
func TestTheAlertRulesAreAboutMetricsThatExist(t *testing.T) {
	document, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rules, _ := strings.Cut(string(document), "```yaml\ngroups:")
	rules, _, _ = strings.Cut(rules, "```")
	expressions := regexp.MustCompile(`(?m)^ +expr: (.+)$`).FindAllStringSubmatch(rules, -1)
	if len(expressions) != 6 {
		t.Fatalf("%d rules, want 6", len(expressions))
	}
	counted := metrics.New(false)
	g := gatewaytest.New(t, service.Options{}, handlers.Gateway{Metrics: counted})
	counted.Events([]domain.Event{{}})
	s := g.Site(t)
	s.Send("GET", "/gateway/mode", "")
	shown := s.Send("GET", "/metrics", "").Text
	for _, expression := range expressions {
		for _, metric := range regexp.MustCompile(`(switchyard_\w+)(?:\{(\w+)=~?"(\w+)?)?`).FindAllStringSubmatch(expression[1], -1) {
			sample := "\n" + metric[1] + `[ {]`
			if metric[2] != "" {
				sample += `(?:[^ ]*,)?` + metric[2] + `="` + metric[3]
			}
			if metric[3] == "5" { // no request has failed
				sample = strings.TrimSuffix(sample, "5")
			}
			if !regexp.MustCompile(sample).MatchString(shown) {
				t.Errorf("no sample of %s", metric[0])
			}
		}
	}
}
