package poll_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/poll"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
	"switchyard/internal/upstream"
	"switchyard/internal/waittest"
)

// ServeHTTP makes the server usable over sockets.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/pipeline" {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.Header().Set("ETag", `"`+s.pipeline+`"`)
		_, _ = io.WriteString(w, s.board)
		return
	}
	since, err := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
	if err != nil || r.URL.Path != "/api/events" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	wait, _ := time.ParseDuration(r.URL.Query().Get("wait")) // 0 if it is absent
	answer, err := s.feed(r.Context(), upstream.FeedRequest{Since: since, Wait: wait, Pipeline: r.URL.Query().Get("pipeline")})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if answer.Instance != "" {
		w.Header().Set("Feed-Instance", answer.Instance)
		w.Header().Set("Feed-Sequence", strconv.FormatInt(answer.Sequence, 10))
	}
	if answer.Pipeline != "" {
		w.Header().Set("Pipeline-Version", answer.Pipeline)
	}
	records := []json.RawMessage{}
	for _, record := range answer.Records {
		records = append(records, record.JSON)
	}
	_ = json.NewEncoder(w).Encode(records) // the reader may be gone
}

// realGateway is a gateway's stream with a real database and real sockets.
type realGateway struct {
	*service.Service
	log  *waittest.Log
	stop func()
}

func startRealGateway(t testing.TB, interval time.Duration) *realGateway {
	t.Helper()
	return startPatientGateway(t, interval, 30*time.Second)
}

// startPatientGateway is startRealGateway with this timeout for a server's answer.
func startPatientGateway(t testing.TB, interval, timeout time.Duration) *realGateway {
	t.Helper()
	db, err := sqlite.Open(context.Background(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	g := &realGateway{log: &waittest.Log{}}
	log := slog.New(slog.NewTextHandler(g.log, nil))
	client := upstream.NewClient(timeout)
	if g.Service, err = service.New(context.Background(), service.Options{Store: db, Projects: client, Log: log}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = poll.New(poll.Options{Projects: g.Projects, Events: g.Events, Feeds: client, Pipelines: g.Pipelines, Interval: interval, Log: log}).Run(ctx) // nil
	}()
	var background sync.WaitGroup
	background.Go(func() { _ = g.Visits.Run(ctx) })
	g.stop = func() {
		cancel()
		<-done
		background.Wait()
		client.Close()
		db.Close()
	}
	return g
}

func (g *realGateway) register(t testing.TB, name, url string) {
	t.Helper()
	if _, err := g.Projects.Add(context.Background(), name, url, nil); err != nil {
		t.Fatal(err)
	}
}

// next waits for n more events of a project after an id and returns their stamps.
func (g *realGateway) next(t testing.TB, project string, after int64, n int) (stamps []int64, last int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for len(stamps) < n {
		page, err := g.Events.Wait(ctx, domain.EventQuery{After: after, Project: project, Limit: 1000}, time.Minute)
		if err != nil || len(page.Events) == 0 {
			t.Fatalf("%s: %v of %d events, %v\n%s", project, stamps, n, err, g.log.String())
		}
		for _, e := range page.Events {
			stamps, after = append(stamps, e.At.UnixMilli()), e.ID
		}
	}
	return stamps, after
}

func TestBadServersAffectOnlyThemselvesAndLeakNothing(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 9<<20))
	z.Close()
	troubles := map[string]http.HandlerFunc{
		"hangs":     func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) },
		"refuses":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"resets":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"bombs": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		},
		"floods": func(w http.ResponseWriter, _ *http.Request) {
			for line := strings.Repeat("[1,2,", 10_000); ; {
				if _, err := io.WriteString(w, line); err != nil {
					return
				}
			}
		},
		"nests": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("[", 100_000)) },
		"trickles": func(w http.ResponseWriter, r *http.Request) {
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for r.Context().Err() == nil {
				fmt.Fprint(w, " ")
				_ = http.NewResponseController(w).Flush()
				<-tick.C
			}
		},
		"chats": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"events":[]}`) },
	}
	good, plain := newServer("i", 10), newServer("", 10)
	plain.plain = true
	goroutines := runtime.NumGoroutine()
	g := startPatientGateway(t, 50*time.Millisecond, 5*time.Second)
	var servers []*httptest.Server
	serve := func(name string, handler http.Handler) {
		s := httptest.NewServer(handler)
		servers = append(servers, s)
		g.register(t, name, s.URL)
	}
	for name, handler := range troubles {
		serve(name, handler)
	}
	serve("good", good)
	serve("plain", plain)
	serve("odd", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `[{"kind":"MergeFailure","timestamp_ms":3},17,{"timestamp_ms":"x"},{"type":"StageTransition","timestamp_ms":1}]`)
	}))
	var after, afterPlain int64
	for stamp := int64(10); stamp < 30; stamp++ {
		if stamp > 10 {
			good.push(stamp)
			plain.push(stamp)
		}
		var got, gotPlain []int64
		got, after = g.next(t, "good", after, 1)
		gotPlain, afterPlain = g.next(t, "plain", afterPlain, 1)
		if !slices.Equal(got, []int64{stamp}) || !slices.Equal(gotPlain, []int64{stamp}) {
			t.Fatalf("got %v and %v, want %d", got, gotPlain, stamp)
		}
	}
	if got, _ := g.next(t, "odd", 0, 2); !slices.Equal(got, []int64{1, 3}) {
		t.Errorf("odd: %v", got)
	}
	for name := range troubles {
		waittest.Until(t, name+" is logged", func() bool { return g.log.Count("cannot be read\" project="+name+" ") == 1 })
	}
	if n := g.log.Count("record of a feed skipped"); n != 2 {
		t.Errorf("%d log lines for two refused records", n)
	}
	g.stop()
	for _, s := range servers {
		s.CloseClientConnections()
		s.Close()
	}
	waittest.Until(t, "goroutines are back to the baseline", func() bool { return runtime.NumGoroutine() <= goroutines+2 })
}

func TestServerThatComesBackOnItsAddressIsFollowedOn(t *testing.T) {
	g := startRealGateway(t, time.Second)
	defer g.stop()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	g.register(t, "alpha", "http://"+address)
	var after int64
	for round := range int64(3) {
		if round > 0 {
			waittest.Until(t, "the port is free again", func() bool {
				listener, err = net.Listen("tcp", address)
				return err == nil
			})
		}
		s := newServer(fmt.Sprint("instance", round), 100*round+1)
		web := http.Server{Handler: s}
		go func() { _ = web.Serve(listener) }() // ends with Close
		var got []int64
		if got, after = g.next(t, "alpha", after, 1); !slices.Equal(got, []int64{100*round + 1}) {
			t.Errorf("round %d: %v", round, got)
		}
		s.push(100*round+2, 100*round+3)
		if got, after = g.next(t, "alpha", after, 2); !slices.Equal(got, []int64{100*round + 2, 100*round + 3}) {
			t.Errorf("round %d: then %v", round, got)
		}
		web.Close()
	}
}

// BenchmarkDelivery follows 1,000 feeds and measures how long an event takes from its project server to a reader of the
// stream.
func BenchmarkDelivery(b *testing.B) {
	const projects = 1000
	g := startRealGateway(b, time.Second)
	var all []*server
	for i := range projects {
		s := newServer("i", 1)
		web := httptest.NewServer(s)
		defer web.Close()
		defer web.CloseClientConnections()
		g.register(b, fmt.Sprint("p", i), web.URL)
		all = append(all, s)
	}
	defer g.stop() // before the servers
	_, after := g.next(b, "", 0, projects)
	waittest.Until(b, "every feed is long-polled", func() bool {
		return !slices.ContainsFunc(all, func(s *server) bool { return len(s.requests()) < 2 })
	})
	var delays []time.Duration
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		all[n*37%projects].push(int64(2 + n))
		_, after = g.next(b, "", after, 1)
		delays = append(delays, time.Since(began))
	}
	slices.Sort(delays)
	b.ReportMetric(float64(delays[len(delays)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(delays[len(delays)*99/100].Microseconds())/1000, "p99-ms")
}
