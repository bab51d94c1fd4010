package handlers_test

import (
	"errors"
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
	"switchyard/internal/service"
	"switchyard/internal/store"
	"switchyard/internal/upstream"
	"switchyard/internal/waittest"
)

func TestMetrics(t *testing.T) {
	db, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	log := slog.New(slog.DiscardHandler)
	counted := handlers.NewMetrics()
	client := upstream.NewClient(time.Minute)
	client.Observe = counted.Call
	svc, err := service.New(t.Context(), service.Options{Store: db, Log: log, Projects: client, Bot: &fakeBot{}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handlers.Gateway{Service: svc, Log: log, Metrics: counted}.Handler())
	defer server.Close()
	s := apiSite{t, svc, server.URL, db}
	s.add(`we"ird\`, upstreamServer(t, says(boardText)))
	s.add("gone", "http://127.0.0.1:1")
	s.send("GET", "/api/gateway/pipeline", "")
	s.send("POST", "/api/gateway/switch", "{}", "Sec-Fetch-Site", "cross-site")
	s.send("GET", "/projects/first", "")
	s.send("GET", "/projects/second", "")
	s.send("GET", "/no/such/1", "")
	s.send("BREW", "/no/such/2", "")
	s.send("DELETE", "/api/gateway/projects/gone", "")
	counted.Call("gone", "feed", errors.New("refused")) // a last call that ended after the removal
	read := domain.FeedRead{ReceivedAtMS: 5500, Records: []domain.Record{{Type: "x", TimestampMS: 3000, JSON: []byte(`{"timestamp_ms":3000}`)}}}
	read.Cursor.Project = "p"
	if err := svc.Events.Record(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	var got reply
	waittest.Until(t, "everything is counted", func() bool { // a long answer may be here before its handler has ended, and the pipelines before that of a slow project
		got = s.send("GET", "/metrics", "")
		return strings.Contains(got.body, "\nswitchyard_http_requests_in_flight 1\n") && strings.Contains(got.body, "\nswitchyard_upstream_calls_total{")
	})
	if !strings.HasPrefix(got.media, "text/plain; version=0.0.4") {
		t.Errorf("type %s", got.media)
	}
	for _, want := range []string{
		`switchyard_http_requests_total{route="/api/gateway/pipeline",method="GET",status="200"} 1`,
		`switchyard_http_requests_total{route="/projects/{name}",method="GET",status="404"} 2`,
		`switchyard_http_requests_total{route="none",method="other",status="404"} 1`,
		`switchyard_http_requests_total{route="none",method="POST",status="403"} 1`,
		`# TYPE switchyard_http_request_duration_seconds histogram`,
		`switchyard_http_request_duration_seconds_bucket{route="/api/gateway/pipeline",le="+Inf"} 1`,
		`switchyard_http_request_duration_seconds_count{route="/api/gateway/pipeline"} 1`,
		`# TYPE switchyard_upstream_up gauge`,
		`switchyard_upstream_calls_total{project="we\"ird\\",kind="pipeline"} 1`,
		`switchyard_upstream_failures_total{project="we\"ird\\",kind="pipeline"} 0`,
		`switchyard_upstream_up{project="we\"ird\\",kind="pipeline"} 1`,
		`switchyard_projects 1`,
		`switchyard_stream_last_event_id 1`,
		`switchyard_stream_lag_seconds 2.5`,
		`switchyard_agents{presence="alive"} 0`,
		`switchyard_bot_state{state="off"} `,
		`switchyard_store_up 1`,
		`process_resident_memory_bytes `,
	} {
		if !strings.Contains("\n"+got.body, "\n"+want) {
			t.Errorf("missing: %s", want)
		}
	}
	if strings.Contains(got.body, "gone") {
		t.Error("a removed project is still there")
	}
	buckets, most := regexp.MustCompile(`_bucket\{route="/projects/\{name\}",le="(.*)"\} (\d+)`).FindAllStringSubmatch(got.body, -1), ""
	for _, bucket := range buckets {
		if bucket[2] < most {
			t.Errorf("%s: the buckets are not cumulative", bucket[0])
		}
		most = bucket[2]
	}
	if len(buckets) < 10 || most != "2" {
		t.Errorf("buckets %q, want the last one to hold 2", buckets)
	}
	wantExposition(t, got.body)
}

// wantExposition checks that text is in Prometheus' form.
func wantExposition(t *testing.T, text string) {
	t.Helper()
	line := regexp.MustCompile(`^[a-z_]+(\{([a-zA-Z]+="([^"\\]|\\["\\n])*"(, ?)?)+\})? [-+0-9.eInfNa]+$`)
	metric := regexp.MustCompile(`^(# TYPE )?[a-z_]+`)
	last, seen := "", map[string]bool{}
	for row := range strings.Lines(text) {
		name := strings.TrimPrefix(metric.FindString(row), "# TYPE ")
		if strings.Contains(name, "_duration_seconds_") {
			name = name[:strings.LastIndex(name, "_")]
		}
		if name != last && seen[name] {
			t.Errorf("the series of %s do not stand together", name)
		}
		last, seen[name] = name, true
		if !line.MatchString(strings.TrimSuffix(row, "\n")) && !strings.HasPrefix(row, "#") {
			t.Errorf("no metric: %s", row)
		}
	}
}

func TestAccessLogAtDebug(t *testing.T) {
	db, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var lines logBuffer
	log := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	svc, err := service.New(t.Context(), service.Options{Store: db, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handlers.Gateway{Service: svc, Log: log}.Handler())
	defer server.Close()
	response, err := http.Get(server.URL + "/oauth/callback?code=c4nary&state=c4nary")
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
