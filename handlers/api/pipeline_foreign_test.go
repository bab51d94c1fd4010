package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"switchyard/internal/gatewaytest"
	"switchyard/internal/waittest"
)

func TestServersWithoutAPipelineHaveEventsOnlyAndOversizeOnesAreCut(t *testing.T) {
	s := newSite(t)
	feed := func(pipeline http.HandlerFunc) string {
		return gatewaytest.ProjectServer(t, pipeline, func(mux *http.ServeMux) { mux.HandleFunc("/api/events", gatewaytest.Says("[]")) })
	}
	s.Add("another form", feed(gatewaytest.Says(`{"columns":[]}`)))
	s.Add("gone", gatewaytest.ProjectServer(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the work directory is gone", http.StatusServiceUnavailable)
	}))
	s.Add("large", gatewaytest.ProjectServer(t, gatewaytest.Says(`{"stages":[`+strings.Repeat(`{"name":"1_a","items":[],"own":1},`, 59)+`{"name":"1_a","items":[]}]}`)))
	s.Add("none", feed(http.NotFound))
	want := map[string]string{
		"another form": `"reachable":false,"error":"answer is not a pipeline"`,
		"gone":         `"reachable":false,"error":"answers with HTTP status 503: the work directory is gone"`,
		"large":        `"note":"only the first 50 of 60 stages are shown","faults":[],"stages":[` + strings.Repeat(`{"name":"1_a","items":[]},`, 49) + `{"name":"1_a","items":[]}]}`,
		"none":         `"events_only":true,"faults":[],"stages":[]}`,
	}
	waittest.Until(t, fmt.Sprint("the answer has ", want), func() bool {
		entries := strings.Split(s.Send("GET", "/api/gateway/pipeline", "").Text, `"url":`)
		return len(entries) == 5 && strings.Contains(entries[1], want["another form"]) && strings.Contains(entries[2], want["gone"]) &&
			strings.Contains(entries[3], want["large"]) && strings.Contains(entries[4], want["none"])
	})
}
