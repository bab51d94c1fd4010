package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"switchyard/internal/waittest"
)

func TestServersWithoutAPipelineHaveEventsOnlyAndOversizeOnesAreCut(t *testing.T) {
	s := newAPISite(t)
	feed := func(pipeline http.HandlerFunc) string {
		return upstreamServer(t, pipeline, func(mux *http.ServeMux) { mux.HandleFunc("/api/events", says("[]")) })
	}
	s.add("another form", feed(says(`{"columns":[]}`)))
	s.add("gone", upstreamServer(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the work directory is gone", http.StatusServiceUnavailable)
	}))
	s.add("large", upstreamServer(t, says(`{"stages":[`+strings.Repeat(`{"name":"1_a","items":[],"own":1},`, 59)+`{"name":"1_a","items":[]}]}`)))
	s.add("none", feed(http.NotFound))
	want := map[string]string{
		"another form": `"events_only":true,"stages":[]}`,
		"gone":         `"reachable":false,"error":"answers with HTTP status 503: the work directory is gone"`,
		"large":        `"note":"only the first 50 of 60 stages are shown","stages":[` + strings.Repeat(`{"name":"1_a","items":[]},`, 49) + `{"name":"1_a","items":[]}]}`,
		"none":         `"events_only":true,"stages":[]}`,
	}
	waittest.Until(t, fmt.Sprint("the answer has ", want), func() bool {
		entries := strings.Split(s.send("GET", "/api/gateway/pipeline", "").body, `"url":`)
		return len(entries) == 5 && strings.Contains(entries[1], want["another form"]) && strings.Contains(entries[2], want["gone"]) &&
			strings.Contains(entries[3], want["large"]) && strings.Contains(entries[4], want["none"])
	})
}
