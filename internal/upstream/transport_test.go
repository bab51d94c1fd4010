package upstream_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
)

// feedServer answers with these texts, one for each request of a connection, and then closes it.
func feedServer(t *testing.T, answers ...string) (project domain.Project, connections *atomic.Int64) {
	connections = &atomic.Int64{}
	return speak(t, func(conn net.Conn) {
		connections.Add(1)
		requests := bufio.NewReader(conn)
		for _, answer := range answers {
			if _, err := http.ReadRequest(requests); err != nil {
				return
			}
			_, _ = io.WriteString(conn, answer)
		}
		conn.Close()
	}), connections
}

const emptyFeed = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"

func TestAFeedsConnectionIsReusedIfPossible(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		connections  int64 // number of them for two requests
	}{
		{"with a length", emptyFeed, 1},
		{"in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n", 1},
		{"after a hint", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + emptyFeed, 1},
		{"closing", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n[]", 2},
		{"until its end", "HTTP/1.0 200 OK\r\n\r\n[]", 2},
		{"with more than it says", emptyFeed + `[{"type":"late","timestamp_ms":1}]`, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers := []string{c.answer, c.answer}
			if c.connections == 2 {
				answers = answers[:1]
			}
			project, connections := feedServer(t, answers...)
			client := newClient(t)
			for range 2 {
				if feed, err := client.Feed(t.Context(), project, upstream.FeedRequest{}); err != nil || feed.Received != 0 {
					t.Fatalf("%+v, %v", feed, err)
				}
			}
			if n := connections.Load(); n != c.connections {
				t.Errorf("%d connections, want %d", n, c.connections)
			}
		})
	}
}

// wantThreeConnections reads a feed three times, each time over another connection.
func wantThreeConnections(t *testing.T, client *upstream.Client, project domain.Project, connections *atomic.Int64) {
	t.Helper()
	for range 3 {
		if _, err := client.Feed(t.Context(), project, upstream.FeedRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

func TestAServerThatClosedAnIdleConnectionIsAskedOverAnotherOne(t *testing.T) {
	project, connections := feedServer(t, emptyFeed)
	wantThreeConnections(t, newClient(t), project, connections)
}

// TestAnIdleConnectionThatTimedOut: some servers send 408 over an idle connection before they close it.
func TestAnIdleConnectionThatTimedOut(t *testing.T) {
	const timedOut = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"
	project, connections := feedServer(t, emptyFeed, timedOut)
	client := newClient(t)
	wantThreeConnections(t, client, project, connections)
	project, _ = feedServer(t, timedOut, timedOut)
	_, err := client.Feed(t.Context(), project, upstream.FeedRequest{})
	if domain.MessageOf(err) != "answers with HTTP status 408" {
		t.Errorf("always: %v", err)
	}
}

func TestPipelinesAreFetchedOverOneConnection(t *testing.T) {
	pipeline := fmt.Sprintf("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: %d\r\n\r\n%s", len(board), board)
	project, connections := feedServer(t, pipeline, "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n", pipeline)
	client := newClient(t)
	var known *domain.PipelineAnswer
	for range 4 { // the server closes the connection after three
		answer, err := client.Pipeline(t.Context(), project, known)
		if err != nil || len(answer.Stages) != 1 {
			t.Fatalf("%+v, %v", answer, err)
		}
		known = answer
	}
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

// TestProjectsBehindOneAddressNeverGetEachOthersAnswers: what the server sends unasked after an answer to one project arrives
// when the other one's request is already under way.
func TestProjectsBehindOneAddressNeverGetEachOthersAnswers(t *testing.T) {
	answer := func(path string) string {
		text := strings.ReplaceAll(board, "7_pay", strings.Split(path, "/")[1])
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	}
	server := speak(t, func(conn net.Conn) {
		requests, late := bufio.NewReader(conn), ""
		for {
			request, err := http.ReadRequest(requests)
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, late+answer(request.URL.Path))
			late = answer(request.URL.Path)
		}
	})
	client := newClient(t)
	for n := range 50 {
		name := []string{"red", "blue"}[n%2]
		project := domain.Project{Name: name, URL: server.URL + "/" + name}
		got, err := client.Pipeline(t.Context(), project, nil)
		if err != nil || got.Stages[0].Items[0].StoryID != name {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestBodyOfANotModifiedAnswerIsNotTakenForTheNextAnswer(t *testing.T) {
	for _, when := range []string{"at once", "with the next answer"} {
		t.Run(when, func(t *testing.T) {
			project := speak(t, func(conn net.Conn) {
				requests, late := bufio.NewReader(conn), ""
				for {
					request, err := http.ReadRequest(requests)
					if err != nil {
						return
					}
					answer := late + "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n"
					switch {
					case request.Header.Get("If-None-Match") == "":
						answer = fmt.Sprintf("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: %d\r\n\r\n%s", len(board), board)
					case when == "at once":
						answer += board
					default:
						late = board
					}
					_, _ = io.WriteString(conn, answer)
				}
			})
			client := newClient(t)
			known, err := client.Pipeline(t.Context(), project, nil)
			for range 10 {
				if err == nil {
					_, err = client.Pipeline(t.Context(), project, known)
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCompressedFeedIsDecompressed(t *testing.T) {
	project := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("asked with %v", r.Header)
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		_, _ = io.WriteString(z, `[{"type":"x","timestamp_ms":1}]`)
	})
	feed, err := newClient(t).Feed(t.Context(), project, upstream.FeedRequest{})
	if err != nil || feed.Received != 1 {
		t.Errorf("%+v, %v", feed, err)
	}
}

func TestAFeedsHeaderIsBounded(t *testing.T) {
	for name, header := range map[string]string{
		"one line":        "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 100_000),
		"many lines":      "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 20_000),
		"hints for ever":  strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 10_000),
		"no line at all":  strings.Repeat("x", 100_000),
		"another purpose": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			project, _ := feedServer(t, header)
			_, err := newClient(t).Feed(t.Context(), project, upstream.FeedRequest{})
			if domain.CodeOf(err) != domain.BadGateway || domain.MessageOf(err) == "request failed" {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestHostNamesBeyondASCIIAreResolved(t *testing.T) {
	_, err := newClient(t).Feed(t.Context(), domain.Project{Name: "p", URL: "http://zürich.invalid"}, upstream.FeedRequest{})
	if message := domain.MessageOf(err); message != "no such host" && message != "host name could not be looked up" {
		t.Errorf("%v", err)
	}
}

// BenchmarkFeedRead measures the cost of a long poll without news: ten thousand feeds are read 400 times a second.
func BenchmarkFeedRead(b *testing.B) {
	answer := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nFeed-Instance: 1795352516952490098\r\nFeed-Sequence: 12\r\n" +
		"Pipeline-Version: 1795352516952490098-1\r\nDate: Sun, 22 Nov 2026 13:02:58 GMT\r\nContent-Length: 2\r\n\r\n[]"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for request := make([]byte, 4<<10); err == nil; {
			if _, err = conn.Read(request); err == nil {
				_, err = conn.Write([]byte(answer))
			}
		}
	}()
	client := upstream.NewClient(time.Minute)
	defer client.Close()
	project := domain.Project{Name: "alpha", URL: "http://" + listener.Addr().String()}
	b.ReportAllocs()
	for b.Loop() {
		_, err := client.Feed(b.Context(), project, upstream.FeedRequest{Since: 1795352516952, Wait: 25 * time.Second, Pipeline: "1795352516952490098-1"})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIdleFeeds measures the memory of a feed that waits for an answer, in bytes, including stacks, without the server's
// part.
func BenchmarkIdleFeeds(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(idleFeedBytes(b), "bytes/feed")
	}
}

func idleFeedBytes(b *testing.B) float64 {
	const feeds = 1000
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	var open []net.Conn
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	client := upstream.NewClient(time.Minute)
	defer client.Close()
	ctx, cancel := context.WithCancel(b.Context())
	var group sync.WaitGroup
	request := make([]byte, 4<<10)
	for i := range feeds {
		group.Go(func() {
			project := domain.Project{Name: fmt.Sprint(i), URL: "http://" + listener.Addr().String()}
			_, _ = client.Feed(ctx, project, upstream.FeedRequest{Since: 1, Wait: time.Minute})
		})
		conn, err := listener.Accept()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := conn.Read(request); err != nil {
			b.Fatal(err)
		}
		open = append(open, conn)
	}
	runtime.GC()
	runtime.GC() // shrinks mostly unused stacks
	runtime.ReadMemStats(&after)
	cancel()
	group.Wait()
	for _, conn := range open {
		conn.Close()
	}
	return float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse) / feeds
}
