package upstream_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
)

const (
	patience = time.Minute
	board    = `{"project":"p","stages":[{"name":"2_current","items":[{"story_id":"7_pay","story_name":"Pay <now>","blocked":"key","merge_failure":null,"since_ms":12,"extra":[1]}]}]}`
	stages   = `[{"name":"2_current","items":[{"story_id":"7_pay","story_name":"Pay <now>","blocked":"key","merge_failure":null,"since_ms":12,"extra":[1]}]}]`
)

func newClient(t *testing.T) *upstream.Client {
	t.Helper()
	client := upstream.NewClient(patience)
	t.Cleanup(client.Close)
	return client
}

// serve starts a project server that answers every request with handler.
func serve(t *testing.T, handler http.HandlerFunc) domain.Project {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return domain.Project{Name: "p", URL: server.URL}
}

// speak starts a server that accepts connections and handles them with talk.
func speak(t *testing.T, talk func(net.Conn)) domain.Project {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	stop := make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		listener.Close()
		group.Wait()
	})
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				done := make(chan struct{})
				go func() {
					select {
					case <-stop:
					case <-done:
					}
					conn.Close()
				}()
				talk(conn)
				close(done)
			})
		}
	})
	return domain.Project{Name: "p", URL: "http://" + listener.Addr().String()}
}

func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// bomb answers with 20 MiB of spaces, compressed to some 20 kB.
func bomb() http.HandlerFunc {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 20<<20))
	z.Close()
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}
}

func slice(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 1<<10))
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
	for {
		if _, err := conn.Write([]byte("[")); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond) // the server is slow
	}
}

func letter(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 1<<10))
	_, _ = io.WriteString(conn, "H")
	_, _ = io.Copy(io.Discard, conn)
}

func reset(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 1))
	_ = conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}

func TestPipelineIsKeptUnchanged(t *testing.T) {
	var header http.Header
	project := serve(t, func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		if r.URL.Path != "/below/api/pipeline" || r.Header.Get("Authorization") != "Bearer s3cret" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, board)
	})
	project.URL += "/below/"
	project.Token = "s3cret"
	answer, err := newClient(t).Pipeline(t.Context(), project, nil)
	if err != nil {
		t.Fatal(err)
	}
	if header.Get(domain.HopHeader) == "" || header.Get("User-Agent") != domain.GatewayUserAgent {
		t.Errorf("asked with %v", header)
	}
	if string(answer.Raw) != stages {
		t.Errorf("raw: %s", answer.Raw)
	}
	if len(answer.Stages) != 1 || answer.Stages[0].Items[0].StoryName != "Pay <now>" || answer.Stages[0].Items[0].Blocked != "key" {
		t.Errorf("stages: %+v", answer.Stages)
	}
}

// Texts may contain any number of brackets, and an answer within the depth limit is accepted.
func TestPipelineMayNest(t *testing.T) {
	text := strings.Repeat(`[{\"\\`, 100)
	stages := `[{"name":"` + text + `","items":[],"x":` + strings.Repeat("[", 97) + strings.Repeat("]", 97) + `,"y":[[],[]]}]`
	answer, err := newClient(t).Pipeline(t.Context(), serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"stages":`+stages+`}`)
	}), nil)
	if err != nil || string(answer.Raw) != stages {
		t.Errorf("answer %+v, %v", answer, err)
	}
}

func TestUnchangedPipelineIsNotSentAgain(t *testing.T) {
	sent := 0
	project := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		sent++
		_, _ = io.WriteString(w, board)
	})
	client := newClient(t)
	first, err := client.Pipeline(t.Context(), project, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := client.Pipeline(t.Context(), project, first)
	if err != nil || second != first || sent != 1 {
		t.Errorf("%v, sent %d times", err, sent)
	}
}

func TestFailuresAreErrorsInWords(t *testing.T) {
	plain := serve(t, body(board))
	for name, test := range map[string]struct {
		project domain.Project
		want    string
	}{
		"refuses":          {domain.Project{URL: "http://127.0.0.1:1"}, "connection refused"},
		"unknown host":     {domain.Project{URL: "http://no-such-host.invalid"}, "no such host"},
		"hangs":            {serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), "timed out"},
		"says nothing":     {speak(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), "timed out"},
		"a byte at a time": {speak(t, slice), "timed out"},
		"one byte":         {speak(t, letter), "timed out"},
		"resets":           {speak(t, reset), "connection reset"},
		"closes":           {speak(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1<<10)) }), "connection closed before"},
		"cuts off": {speak(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1<<10))
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
		}), "connection closed before"},
		"is no HTTP": {speak(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1<<10))
			_, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n\r\n")
		}), "does not speak HTTP"},
		"is no https": {domain.Project{URL: strings.Replace(plain.URL, "http:", "https:", 1)}, "speaks http, not https"},
		"long header": {serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }), "header is too large"},
		"redirects": {serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, plain.URL, http.StatusTemporaryRedirect)
		}), "answers with a redirect"},
		"wants a token":     {serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }), "refuses the token"},
		"is something else": {serve(t, http.NotFound), "not a project server (HTTP status 404)"},
		"fails":             {serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }), "HTTP status 503"},
		"304 unasked":       {serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }), "HTTP status 304"},
		"204":               {serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }), "HTTP status 204"},
		"bomb":              {serve(t, bomb()), "too large"},
		"announces 1 GB":    {serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1000000000") }), "too large"},
		"damaged gzip": {serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, board)
		}), "damaged"},
		"nests":            {serve(t, body(strings.Repeat("[", 100_000))), "not a pipeline"},
		"nests in stages":  {serve(t, body(`{"stages":[{"name":"a","items":[],"x":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`}]}`)), "not a pipeline"},
		"nests a little":   {serve(t, body(`{"stages":[{"name":"a","items":[],"x":`+strings.Repeat("[", 98)+strings.Repeat("]", 98)+`}]}`)), "not a pipeline"},
		"many values":      {serve(t, body(`{"stages":[{"name":"a","items":[`+strings.Repeat("null,", 1_000_000)+`null]}]}`)), "too large"},
		"many nulls":       {serve(t, body(`{"stages":[{"name":"a","items":[`+strings.Repeat("null,", 100_000)+`null]}]}`)), "not a pipeline"},
		"HTML":             {serve(t, body("<html>")), "not a pipeline"},
		"nothing":          {serve(t, body("")), "not a pipeline"},
		"null":             {serve(t, body("null")), "not a pipeline"},
		"no stages":        {serve(t, body(`{"project":"p"}`)), "not a pipeline"},
		"stages null":      {serve(t, body(`{"stages":null}`)), "not a pipeline"},
		"stages an object": {serve(t, body(`{"stages":{}}`)), "not a pipeline"},
		"stage a string":   {serve(t, body(`{"stages":["2_current"]}`)), "not a pipeline"},
		"no items":         {serve(t, body(`{"stages":[{"name":"2_current"}]}`)), "not a pipeline"},
		"no story id":      {serve(t, body(`{"stages":[{"name":"2_current","items":[{}]}]}`)), "not a pipeline"},
		"wrong type":       {serve(t, body(`{"stages":[{"name":"2_current","items":[{"story_id":"a","blocked":true}]}]}`)), "not a pipeline"},
		"trailing data":    {serve(t, body(board+"x")), "not a pipeline"},
		"no UTF-8":         {serve(t, body(strings.Replace(board, "7_pay", "\xff", 1))), "not a pipeline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t)
			if test.want == "timed out" {
				client = upstream.NewClient(time.Second)
				t.Cleanup(client.Close)
			}
			answer, err := client.Pipeline(t.Context(), test.project, nil)
			if answer != nil || domain.CodeOf(err) != domain.BadGateway || !strings.Contains(domain.MessageOf(err), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestEmptyBoardIsAPipeline(t *testing.T) {
	answer, err := newClient(t).Pipeline(t.Context(), serve(t, body(`{"stages":[]}`)), nil)
	if err != nil || string(answer.Raw) != "[]" {
		t.Errorf("%v, %v", answer, err)
	}
}

func TestEndOfTheCallerIsNoFailureOfTheProject(t *testing.T) {
	asked := make(chan struct{})
	project := serve(t, func(_ http.ResponseWriter, r *http.Request) { close(asked); <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := newClient(t).Pipeline(ctx, project, nil); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

func TestEnvironmentProxyIsNotUsed(t *testing.T) {
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") })
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	if _, err := newClient(t).Pipeline(t.Context(), domain.Project{URL: "http://no-such-host.invalid"}, nil); domain.MessageOf(err) != "no such host" {
		t.Error(err)
	}
}

// TestMemoryIsBounded requests sixty pipelines at once, all as large as possible.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes over a second of processor time")
	}
	const servers = 60
	lie := strings.Repeat(" ", 1<<20)
	project := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 1000 {
			if _, err := io.WriteString(w, lie); err != nil {
				return
			}
		}
	})
	client := upstream.NewClient(3 * time.Second)
	defer client.Close()
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	var peak uint64
	var group sync.WaitGroup
	results := make(chan error, servers)
	for range servers {
		group.Go(func() {
			_, err := client.Pipeline(t.Context(), project, nil)
			results <- err
		})
	}
	for range servers {
		// Those that do not get a slot in time time out.
		if err := <-results; !strings.Contains(domain.MessageOf(err), "too large") && !strings.Contains(domain.MessageOf(err), "timed out") {
			t.Errorf("got %v", err)
		}
		runtime.ReadMemStats(&now)
		peak = max(peak, now.HeapInuse)
	}
	group.Wait()
	if grown := (peak - min(peak, before.HeapInuse)) >> 20; grown > 300 { // reading all at once would take 480 MiB, and as much again in garbage
		t.Errorf("the heap grew by %d MiB", grown)
	}
}

func FuzzPipeline(f *testing.F) {
	for _, seed := range []string{
		board, `{"stages":[]}`, `{"stages":null}`, `{"Stages":[],"stages":[{"name":"a","items":[{"story_id":"\ud800"}]}]}`, `{"x":[],"stages":[]}`,
		`[[`, `{"stages":[{"name":"a","items":[{"story_id":"b","since_ms":1e400}]}]}`, "{\"stages\":[{\"name\":\"\xff\",\"items\":[]}]}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, err := upstream.ParsePipeline(body)
		if err != nil {
			if domain.CodeOf(err) != domain.BadGateway || domain.MessageOf(err) == "" {
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		// An accepted pipeline goes into the gateway's own answers unchanged.
		if !json.Valid(answer.Raw) || !utf8.Valid(answer.Raw) || answer.Raw[0] != '[' || answer.Stages == nil {
			t.Errorf("%q was taken: %q", body, answer.Raw)
		}
	})
}

func BenchmarkPipeline(b *testing.B) {
	for _, items := range []int{4, 400} {
		b.Run(fmt.Sprint(items, " items"), func(b *testing.B) {
			item := `{"story_id":"7_pay","story_name":"Pay","blocked":null,"merge_failure":null,"since_ms":12},`
			text := `{"project":"p","stages":[{"name":"2_current","items":[` + strings.TrimSuffix(strings.Repeat(item, items), ",") + `]}]}`
			server := httptest.NewServer(body(text))
			defer server.Close()
			client := upstream.NewClient(time.Second)
			defer client.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.Pipeline(b.Context(), domain.Project{URL: server.URL}, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
