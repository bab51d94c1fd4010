package handlers_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/metrics"
	"switchyard/internal/service"
	"switchyard/internal/upstream"
	"switchyard/internal/waittest"
)

func TestMetrics(t *testing.T) {
	counted := metrics.New(true)
	client := upstream.NewClient(time.Minute)
	client.Observe = counted.Call
	g := gatewaytest.New(t, service.Options{Projects: client, Observe: counted.Events}, handlers.Gateway{Metrics: counted, Version: "1.2.3"})
	s := g.Site(t)
	s.Add(`we"ird\`, gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText)))
	s.Add("gone", "http://127.0.0.1:1")
	s.Send("GET", "/api/gateway/pipeline", "")
	s.Send("POST", "/api/gateway/switch", "{}", "Sec-Fetch-Site", "cross-site")
	s.Send("GET", "/projects/first", "")
	s.Send("GET", "/projects/second", "")
	s.Send("GET", "/no/such/1", "")
	s.Send("BREW", "/no/such/2", "")
	s.Send("DELETE", "/api/gateway/projects/gone", "")
	counted.Call("gone", "feed", errors.New("refused")) // a last call that ended after the removal
	read := domain.FeedRead{ReceivedAt: time.UnixMilli(5500), Records: []domain.Record{{Type: "x", At: time.UnixMilli(3000), JSON: []byte(`{"timestamp_ms":3000}`)}}}
	read.Cursor.Project = "p"
	if err := s.Events.Record(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	counted.BotMessage(false)
	counted.BotMessage(false)
	counted.BotMessage(true)
	stream, err := http.Get(s.URL + "/api/gateway/events/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	var got gatewaytest.Answer
	waittest.Until(t, "everything is counted", func() bool { // an answer may arrive before its handler has returned, and the pipelines before a slow project has answered
		got = s.Send("GET", "/metrics", "")
		return strings.Contains(got.Text, "\nswitchyard_http_requests_in_flight 2\n") && strings.Contains(got.Text, "\nswitchyard_upstream_calls_total{")
	})
	if !strings.HasPrefix(got.Media(), "text/plain; version=0.0.4") {
		t.Errorf("type %s", got.Media())
	}
	for _, want := range []string{
		`switchyard_http_requests_total{method="GET",route="/api/gateway/pipeline",status="200"} 1`,
		`switchyard_http_requests_total{method="GET",route="/projects/{name}",status="404"} 2`,
		`switchyard_http_requests_total{method="other",route="none",status="404"} 1`,
		`switchyard_http_requests_total{method="POST",route="none",status="403"} 1`,
		`# TYPE switchyard_http_request_duration_seconds histogram`,
		`switchyard_http_request_duration_seconds_bucket{route="/api/gateway/pipeline",le="+Inf"} 1`,
		`switchyard_http_request_duration_seconds_count{route="/api/gateway/pipeline"} 1`,
		`# TYPE switchyard_upstream_up gauge`,
		`switchyard_upstream_calls_total{kind="pipeline",project="we\"ird\\"} 1`,
		`switchyard_upstream_failures_total{kind="pipeline",project="we\"ird\\"} 0`,
		`switchyard_upstream_up{kind="pipeline",project="we\"ird\\"} 1`,
		`switchyard_projects 1`,
		`switchyard_stream_last_event_id 1`,
		`switchyard_stream_lag_seconds_bucket{le="2.5"} 1`,
		`switchyard_stream_lag_seconds_sum 2.5`,
		`switchyard_agents{presence="alive"} 0`,
		`switchyard_bot_state{state="off"} `,
		`switchyard_store_up 1`,
		`process_resident_memory_bytes `,
		`process_open_fds `,
		`switchyard_build_info{goversion="`,
		`switchyard_events_total{type="other"} 1`,
		`switchyard_bot_messages_total{result="sent"} 2`,
		`switchyard_bot_messages_total{result="refused"} 1`,
		`switchyard_open_streams 1`,
	} {
		if !strings.Contains("\n"+got.Text, "\n"+want) {
			t.Errorf("missing: %s", want)
		}
	}
	if strings.Contains(got.Text, "gone") {
		t.Error("a removed project is still there")
	}
	buckets, most := regexp.MustCompile(`_bucket\{route="/projects/\{name\}",le="(.*)"\} (\d+)`).FindAllStringSubmatch(got.Text, -1), ""
	for _, bucket := range buckets {
		if bucket[2] < most {
			t.Errorf("%s: the buckets are not cumulative", bucket[0])
		}
		most = bucket[2]
	}
	if len(buckets) < 10 || most != "2" {
		t.Errorf("buckets %q, want the last one to hold 2", buckets)
	}
	wantExposition(t, got.Text)
}

// wantExposition checks what promtool check metrics checks: each metric has a help text and a type, directly followed by its
// samples, and a conventional name.
func wantExposition(t *testing.T, text string) {
	t.Helper()
	sample := regexp.MustCompile(`^([a-z_]+)(?:\{(?:[a-z_]+="(?:[^"\\]|\\["\\n])*",?)+\})? [-+0-9.e]+$`)
	var name, kind string
	seen := map[string]bool{}
	for row := range strings.Lines(text) {
		row = strings.TrimSuffix(row, "\n")
		if help, ok := strings.CutPrefix(row, "# HELP "); ok {
			words := ""
			name, words, _ = strings.Cut(help, " ")
			if kind = ""; words == "" || seen[name] {
				t.Errorf("%s: no help, or twice", name)
			}
			seen[name] = true
			continue
		}
		if declared, ok := strings.CutPrefix(row, "# TYPE "+name+" "); ok {
			kind = declared
			if counter := kind == "counter"; counter != strings.HasSuffix(name, "_total") {
				t.Errorf("%s is a %s: counters, and only they, end in _total", name, kind)
			}
			if regexp.MustCompile(`_(count|sum|bucket|info_total)$|milli|_ms$|_kb$`).MatchString(name) {
				t.Errorf("%s: a suffix of histograms, or no base unit", name)
			}
			continue
		}
		if found := sample.FindStringSubmatch(row); found == nil || kind == "" {
			t.Errorf("no sample of a metric with help and type: %s", row)
		} else if kind == "histogram" {
			if of := strings.TrimPrefix(found[1], name); of != "_bucket" && of != "_sum" && of != "_count" {
				t.Errorf("%s is not of the histogram %s", found[1], name)
			}
		} else if found[1] != name && (kind != "summary" || found[1] != name+"_sum" && found[1] != name+"_count") {
			t.Errorf("%s is among the samples of %s", found[1], name)
		}
	}
}

// shown returns the metrics without those of a gateway's state.
func shown(counted *metrics.Counts, registry *domain.Registry) string {
	w := httptest.NewRecorder()
	counted.Handler(registry, func(metrics.Show) {}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestMetricsDoNotGrowWithTheNumberOfProjects(t *testing.T) {
	size := func(projects int) (string, int) {
		counted := metrics.New(false)
		registry := &domain.Registry{}
		for i := range projects {
			name := fmt.Sprintf("project-%05d", i)
			registry.Projects = append(registry.Projects, domain.Project{Name: name})
			counted.Call(name, "feed", nil)
			counted.Call(name, "pipeline", errors.New("refused"))
		}
		text := shown(counted, registry)
		return text, len(text)
	}
	text, large := size(10_000)
	for _, want := range []string{
		`switchyard_upstream_calls_total{kind="feed"} 10000`,
		`switchyard_upstream_failures_total{kind="pipeline"} 10000`,
		`switchyard_upstream_projects{kind="feed",state="up"} 10000`,
		`switchyard_upstream_projects{kind="pipeline",state="down"} 10000`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("missing: %s", want)
		}
	}
	if _, small := size(10); large > small+100 {
		t.Errorf("%d bytes with 10 projects, %d with 10,000", small, large)
	}
	wantExposition(t, text)
}

func TestTotalsOfCallsNeverFall(t *testing.T) {
	counted := metrics.New(false)
	counted.Call("gone", "feed", nil)
	if got := shown(counted, &domain.Registry{}); !strings.Contains(got, `switchyard_upstream_calls_total{kind="feed"} 1`) || !strings.Contains(got, `state="up"} 0`) {
		t.Errorf("after a project was removed: %s", got)
	}
}

func TestMetricsAreCompressedForClientsThatAcceptIt(t *testing.T) {
	s := gatewaytest.NewWholeSite(t, service.Options{}, "")
	request, err := http.NewRequest("GET", s.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	reader, err := gzip.NewReader(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil || response.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(string(text), "\nswitchyard_store_up 1\n") {
		t.Errorf("%v, %s, %s", err, response.Header, text)
	}
}

func TestAccessLogAtDebug(t *testing.T) {
	var lines waittest.Log
	log := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := gatewaytest.NewSite(t, service.Options{Log: log}, handlers.Gateway{})
	response, err := http.Get(s.URL + "/oauth/callback?code=c4nary&state=c4nary")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	waittest.Until(t, "the request is logged", func() bool { return strings.Contains(lines.String(), "msg=request") })
	got := lines.String()
	for _, want := range []string{"level=DEBUG", "id=" + response.Header.Get("X-Request-Id"), "method=GET", "path=/oauth/callback", "status=400", "took=", "bytes="} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %s in %s", want, got)
		}
	}
	if strings.Contains(got, "c4nary") {
		t.Errorf("the query was logged: %s", got)
	}
}
