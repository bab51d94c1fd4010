package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/waittest"
)

func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

type pipelineReply struct {
	Active   *string
	Projects map[string]pipelineEntry
}

type pipelineEntry struct {
	URL         string
	Reachable   *bool
	Stale       *bool
	FetchedAtMS *int64 `json:"fetched_at_ms"`
	Stages      []any
	Error       *string
	LastSeenMS  *int64 `json:"last_seen_ms"`
}

func TestPipelineHasEveryProject(t *testing.T) {
	s := newSite(t)
	if got := s.Send("GET", "/api/gateway/pipeline", ""); got.Text != `{"active":null,"projects":{}}` || got.Media() != asJSON {
		t.Errorf("without projects: %s %s", got.Media(), got.Text)
	}
	var hops atomic.Int64
	self := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hops.Add(1)
		http.Redirect(w, r, s.URL+r.URL.Path, http.StatusPermanentRedirect)
	}))
	t.Cleanup(self.Close)
	good := gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText))
	for name, url := range map[string]string{
		"good": good, `we"ird/<name>`: good + "/", "closed": "http://127.0.0.1:1", "redirects": self.URL, "hangs": gatewaytest.ProjectServer(t, hangs),
		"lies": gatewaytest.ProjectServer(t, gatewaytest.Says(`{"stages":7}`)), "self": s.URL, "self/below": s.URL + "/api/gateway",
		"metadata": "http://169.254.169.254", "mapped": "http://[::ffff:169.254.169.254]", "anywhere": "http://0.0.0.0:1",
	} {
		s.Add(name, url)
	}
	if err := s.Projects.Switch(t.Context(), "good"); err != nil {
		t.Fatal(err)
	}
	before := time.Now().UnixMilli()
	var got gatewaytest.Answer
	var answer pipelineReply
	asked := int64(0)
	waittest.Until(t, "all projects have answered", func() bool { // on a busy machine not all answer within the time that the gateway waits for them
		asked++
		got, answer = s.Send("GET", "/api/gateway/pipeline", ""), pipelineReply{}
		got.Decode(t, &answer)
		for name, e := range answer.Projects {
			if name != "hangs" && (e.Error != nil && *e.Error == "no answer yet" || e.Stale != nil && *e.Stale) {
				return false
			}
		}
		return true
	})
	if answer.Active == nil || *answer.Active != "good" || len(answer.Projects) != 11 {
		t.Fatalf("%s", got.Text)
	}
	for name, want := range map[string]string{
		"closed": "connection refused", "redirects": "answers with a redirect", "lies": "not a pipeline", "self": "HTTP status 404",
		"self/below": "HTTP status 404", "metadata": "address not allowed: link-local", "mapped": "address not allowed: link-local",
		"anywhere": "address not allowed: unspecified",
	} {
		e := answer.Projects[name]
		if e.Reachable == nil || *e.Reachable || e.Error == nil || !strings.Contains(*e.Error, want) || e.Stale != nil || e.Stages != nil || e.LastSeenMS != nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
	for _, name := range []string{"good", `we"ird/<name>`} {
		e := answer.Projects[name]
		if e.Reachable == nil || !*e.Reachable || e.Stale == nil || *e.Stale || e.FetchedAtMS == nil || *e.FetchedAtMS < before || e.Error != nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
	stages := strings.Replace(gatewaytest.BoardText[strings.Index(gatewaytest.BoardText, "["):len(gatewaytest.BoardText)-1], `"since_ms":5`, `"since_ms":5,"blocked_since_ms":null,"claim":null,"cost_usd":null`, 1)
	if !strings.Contains(got.Text, `"good":{"url":"`+good+`","reachable":true,"stale":false,"fetched_at_ms":`) || !strings.Contains(got.Text, `"stages":`+stages+`}`) {
		t.Errorf("stages did not pass as they came: %s", got.Text)
	}
	if e := answer.Projects["hangs"]; *e.Reachable || *e.Error != "no answer yet" && !strings.HasPrefix(*e.Error, "timed out") {
		t.Errorf("hangs: %+v", e)
	}
	if hops.Load() > asked {
		t.Errorf("%d hops for %d requests", hops.Load(), asked)
	}
}

func TestLastSeenStaysWhenAProjectGoes(t *testing.T) {
	s := newSite(t)
	var broken atomic.Bool
	s.Add("p", gatewaytest.ProjectServer(t, func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			w.WriteHeader(500)
			return
		}
		_, _ = io.WriteString(w, gatewaytest.BoardText)
	}))
	var e pipelineEntry
	entry := func() pipelineEntry {
		var answer pipelineReply
		s.Send("GET", "/api/gateway/pipeline", "").Decode(t, &answer)
		e = answer.Projects["p"]
		return e
	}
	waittest.Until(t, "the project is reachable", func() bool { return *entry().Reachable })
	seen := *e.FetchedAtMS
	broken.Store(true)
	waittest.Until(t, "the project is unreachable", func() bool { return !*entry().Reachable && *e.Error == "answers with HTTP status 500" })
	if e.LastSeenMS == nil || *e.LastSeenMS < seen {
		t.Errorf("%+v", e)
	}
	broken.Store(false)
	waittest.Until(t, "the project is reachable again", func() bool { return *entry().Reachable })
}

// BenchmarkPipelineAPI requests fresh pipelines when 5 % of the projects refuse connections and 2 % hang.
func BenchmarkPipelineAPI(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n, " projects"), func(b *testing.B) {
			s := newSite(b)
			hanging := gatewaytest.ProjectServer(b, hangs)
			for i := range n {
				url := ""
				switch {
				case i%20 == 7:
					url = "http://127.0.0.1:1"
				case i%50 == 3:
					url = hanging
				default:
					url = gatewaytest.ProjectServer(b, gatewaytest.Says(gatewaytest.BoardText))
				}
				s.Add(fmt.Sprintf("p%04d", i), url)
			}
			ask := func() time.Duration {
				began := time.Now()
				if got := s.Send("GET", "/api/gateway/pipeline", ""); got.StatusCode != 200 {
					b.Fatal(got)
				}
				return time.Since(began)
			}
			first := ask()
			waittest.Until(b, "the hanging ones have timed out", func() bool { // until the hanging ones have timed out
				_, all := s.Pipelines.All(b.Context(), time.Minute)
				return !slices.ContainsFunc(all, func(p domain.ProjectPipeline) bool { return p.Error == "no answer yet" })
			})
			var worst, cpu time.Duration
			for b.Loop() {
				b.StopTimer()
				time.Sleep(110 * time.Millisecond) // so that the last answers are no longer fresh
				before := waittest.CPUTime()
				b.StartTimer()
				worst = max(worst, ask())
				cpu += waittest.CPUTime() - before
			}
			b.ReportMetric(float64(cpu.Microseconds())/1000/float64(b.N), "ms-cpu/op")
			b.ReportMetric(float64(first.Microseconds())/1000, "ms-first")
			b.ReportMetric(float64(worst.Microseconds())/1000, "ms-worst")
		})
	}
}
