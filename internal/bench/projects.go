package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// projectServers is any number of project servers behind one listener, each with its own loopback address (127.1.x.y).
// With faults, of each 100 projects, from the 94th on, 5 refuse connections and 2 hang.
type projectServers struct {
	port     string
	server   *httptest.Server
	servers  []*projectServer
	instance string
	followed atomic.Int64 // servers whose feed has been long-polled at least once
	shown    atomic.Int64 // servers whose pipeline has been requested at least once
	read     atomic.Int64 // servers whose history has been requested at least once
}

// projectServer answers as our own does: a pipeline with an ETag, a feed with long polling.
type projectServer struct {
	mu       sync.Mutex
	followed bool
	shown    bool
	read     bool
	events   []json.RawMessage // the newest
	stamps   []int64           // of events
	sequence int
	changed  chan struct{} // closed by the next event
}

// loopbackOnly closes connections from other hosts: listening on each address would double the number of descriptors.
type loopbackOnly struct{ net.Listener }

func (l loopbackOnly) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || conn.LocalAddr().(*net.TCPAddr).IP.IsLoopback() {
			return conn, err
		}
		conn.Close()
	}
}

func startProjects(count int) (*projectServers, error) {
	listener, err := net.Listen("tcp4", ":0")
	if err != nil {
		return nil, err
	}
	f := &projectServers{
		instance: fmt.Sprint(time.Now().UnixNano()),
		port:     strconv.Itoa(listener.Addr().(*net.TCPAddr).Port),
	}
	for range count {
		f.servers = append(f.servers, &projectServer{changed: make(chan struct{})})
	}
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	f.server.Listener.Close()
	f.server.Listener = loopbackOnly{listener}
	f.server.Start()
	return f, nil
}

func (f *projectServers) stop() {
	f.server.CloseClientConnections()
	f.server.Close()
}

func host(n int) string { return fmt.Sprintf("127.1.%d.%d", n/250, n%250+1) }

// number is the inverse of host.
func (f *projectServers) number(host string) (n int, ok bool) {
	parts := strings.Split(host, ".")
	if len(parts) != 4 {
		return 0, false
	}
	x, _ := strconv.Atoi(parts[2])
	y, _ := strconv.Atoi(parts[3])
	n = x*250 + y - 1
	return n, n >= 0 && n < len(f.servers)
}

// url returns the address of project n. With faults, 5 of 100 are dead and 2 hang.
func (f *projectServers) url(n int, faults bool) string {
	switch {
	case faults && n%100 >= 93 && n%100 < 98:
		return "http://" + host(n) + ":1"
	case faults && n%100 >= 98:
		return "http://" + host(n) + ":" + f.port + "/hang"
	}
	return "http://" + host(n) + ":" + f.port
}

// keptEvents is how many events a server keeps, like our own.
const keptEvents = 500

// push records an event of project n; its reason is the current time in nanoseconds.
func (f *projectServers) push(n int) {
	s := f.servers[n]
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	stamp := now.UnixMilli()
	if k := len(s.stamps); k > 0 {
		stamp = max(stamp, s.stamps[k-1]+1)
	}
	s.events = append(s.events, fmt.Appendf(nil,
		`{"type":"story_blocked","story_id":"14_story_login","story_name":"Sign in","reason":"%d","timestamp_ms":%d}`,
		now.UnixNano(), stamp))
	s.stamps = append(s.stamps, stamp)
	s.sequence++
	if over := len(s.events) - keptEvents; over > 0 {
		s.events, s.stamps = s.events[over:], s.stamps[over:]
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// boardBody returns a pipeline of eight stories; in one project of twenty, one of them is blocked.
func boardBody(n int) []byte {
	var b bytes.Buffer
	reason := "null"
	if n%20 == 0 {
		reason = `"waiting for a decision"`
	}
	b.WriteString(`{"project":"p","stages":[`)
	story := 10
	for i, stage := range []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done", "6_archived"} {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":%q,"items":[`, stage)
		for item := range [...]int{3, 2, 1, 0, 2, 0}[i] {
			if item > 0 {
				b.WriteByte(',')
			}
			blocked := "null"
			if stage == "2_current" && item == 1 {
				blocked = reason
			}
			fmt.Fprintf(&b, `{"story_id":"%d_story_measure","story_name":"A story of the usual length, number %d",`+
				`"blocked":%s,"merge_failure":null,"since_ms":%d}`,
				story, story, blocked, started.Add(-time.Duration(story)*time.Minute).UnixMilli())
			story++
		}
		b.WriteString(`]}`)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// started is roughly when the stories of boards last moved.
var started = time.Now()

func (f *projectServers) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/hang/") {
		<-r.Context().Done()
		return
	}
	name, _, _ := net.SplitHostPort(r.Host)
	n, ok := f.number(name)
	switch {
	case ok && r.URL.Path == "/api/pipeline":
		f.servePipeline(w, r, n)
	case ok && r.URL.Path == "/api/events":
		f.serveFeed(w, r, f.servers[n])
	case ok && r.URL.Path == "/api/history":
		f.servers[n].count(&f.servers[n].read, &f.read)
		_, _ = io.WriteString(w, `{"id":"none","complete":true,"next":0,"moves":[]}`)
	default:
		http.NotFound(w, r)
	}
}

func (f *projectServers) servePipeline(w http.ResponseWriter, r *http.Request, n int) {
	f.servers[n].count(&f.servers[n].shown, &f.shown)
	tag := `"` + f.instance + `-1"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(boardBody(n))
}

func (f *projectServers) serveFeed(w http.ResponseWriter, r *http.Request, s *projectServer) {
	query := r.URL.Query()
	since, _ := strconv.ParseInt(query.Get("since"), 10, 64)
	wait, _ := time.ParseDuration(query.Get("wait"))
	newer, sequence, changed := s.after(since)
	version := f.instance + "-1"
	if asked := query.Get("pipeline"); len(newer) == 0 && wait > 0 && (asked == "" || asked == version) {
		s.count(&s.followed, &f.followed)
		timeout := time.NewTimer(wait)
		defer timeout.Stop()
		select {
		case <-changed:
			newer, sequence, _ = s.after(since)
		case <-timeout.C:
		case <-r.Context().Done():
		}
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Feed-Instance", f.instance)
	header.Set("Feed-Sequence", strconv.Itoa(sequence))
	header.Set("Pipeline-Version", version)
	_, _ = io.WriteString(w, "[")
	_, _ = w.Write(bytes.Join(newer, []byte(",")))
	_, _ = io.WriteString(w, "]")
}

// count adds the server to servers once.
func (s *projectServer) count(counted *bool, servers *atomic.Int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !*counted {
		*counted = true
		servers.Add(1)
	}
}

// after returns the events stamped later than since, the sequence, and a channel that the next event closes.
func (s *projectServer) after(since int64) (newer [][]byte, sequence int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, stamp := range s.stamps {
		if stamp > since {
			newer = append(newer, s.events[i])
		}
	}
	return newer, s.sequence, s.changed
}
