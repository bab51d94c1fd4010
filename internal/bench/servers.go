package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a server that was started for a measurement.
type process struct {
	command *exec.Cmd
	address string
}

func (p *process) url() string { return "http://" + p.address }
func (p *process) pid() int    { return p.command.Process.Pid }

func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	_ = p.command.Wait()
}

// freeAddress returns a loopback address that nothing listens on now.
func freeAddress() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// start runs the program with its --listen flag set and returns when it answers, and how long that took.
func start(program string, args ...string) (*process, time.Duration, error) {
	address := freeAddress()
	home := filepath.Join(workDir, "home")
	command := exec.Command(program, append(args, "--listen", address)...)
	command.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	began := time.Now()
	if err := command.Start(); err != nil {
		return nil, 0, err
	}
	p := &process{command, address}
	for time.Since(began) < 10*time.Second {
		if err := answers(address); err == nil {
			return p, time.Since(began), nil
		}
		time.Sleep(200 * time.Microsecond)
	}
	p.stop()
	return nil, 0, fmt.Errorf("%s did not start: %s", strings.Join(args, " "), output.String())
}

// answers asks for /healthz over a fresh connection.
func answers(address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	return readAnswer(bufio.NewReader(conn))
}

// startNginx serves directory with one worker, access log off, or returns nil where no nginx is installed.
func startNginx(directory string) (*process, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		return nil, nil
	}
	address := freeAddress()
	config := filepath.Join(workDir, "nginx.conf")
	text := fmt.Sprintf(`daemon off; worker_processes 1; user root; pid %[1]s/nginx.pid; error_log %[1]s/nginx.log;
events { worker_connections 1024; }
http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; default_type application/json; etag on;
  server { listen %[2]s; root %[3]s; } }`, workDir, address, directory)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(directory, "healthz"), []byte("ok"), 0o644); err != nil {
		return nil, err
	}
	command := exec.Command(program, "-c", config)
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &process{command, address}
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(5 * time.Millisecond) {
		if answers(address) == nil {
			return p, nil
		}
	}
	p.stop()
	return nil, fmt.Errorf("nginx did not start, see %s/nginx.log", workDir)
}

// projectServers are project servers on one port, each on a loopback address of its own (127.1.x.y).
// Of 100 projects, from the 94th on, 5 refuse (nothing answers there) and 2 hang, where faults are asked for.
type projectServers struct {
	port      string
	listeners []net.Listener
	mu        sync.Mutex
	feeds     map[string]*servedFeed
	instance  string
}

type servedFeed struct {
	events  []json.RawMessage
	last    int64
	changed chan struct{}
}

func startProjects(projects int) (*projectServers, error) {
	_, port, _ := net.SplitHostPort(freeAddress())
	f := &projectServers{port: port, feeds: map[string]*servedFeed{}, instance: fmt.Sprint(time.Now().UnixNano())}
	for n := range projects {
		listener, err := net.Listen("tcp", net.JoinHostPort(host(n), port))
		if err != nil {
			f.stop()
			return nil, err
		}
		f.listeners = append(f.listeners, listener)
		go func() { _ = http.Serve(listener, http.HandlerFunc(f.serve)) }()
	}
	return f, nil
}

func (f *projectServers) stop() {
	for _, listener := range f.listeners {
		listener.Close()
	}
}

func host(n int) string { return fmt.Sprintf("127.1.%d.%d", n/250, n%250+1) }

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

func (f *projectServers) feed(name string) *servedFeed {
	f.mu.Lock()
	defer f.mu.Unlock()
	feed, ok := f.feeds[name]
	if !ok {
		feed = &servedFeed{changed: make(chan struct{})}
		f.feeds[name] = feed
	}
	return feed
}

// push records an event at project n; its reason is the time in nanoseconds at which that happened.
func (f *projectServers) push(n int) {
	feed := f.feed(host(n))
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	feed.last = max(feed.last+1, now.UnixMilli())
	feed.events = append(feed.events, fmt.Appendf(nil,
		`{"type":"story_blocked","story_id":"1","story_name":"s","reason":"%d","timestamp_ms":%d}`, now.UnixNano(), feed.last))
	close(feed.changed)
	feed.changed = make(chan struct{})
}

const boardBody = `{"project":"p","stages":[{"name":"1_backlog","items":[]},{"name":"2_current","items":[` +
	`{"story_id":"12_story_pay","story_name":"Pay by card","blocked":null,"merge_failure":null,"since_ms":1700000000000},` +
	`{"story_id":"14_story_login","story_name":"Sign in","blocked":"waiting","merge_failure":null,"since_ms":1700000000000}]},` +
	`{"name":"3_qa","items":[]},{"name":"4_merge","items":[]},{"name":"5_done","items":[]},{"name":"6_archived","items":[]}]}`

func (f *projectServers) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/hang/") {
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/api/pipeline" {
		fmt.Fprint(w, boardBody)
		return
	}
	name, _, _ := net.SplitHostPort(r.Host)
	feed := f.feed(name)
	var since int64
	fmt.Sscan(r.URL.Query().Get("since"), &since)
	wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
	timeout := time.After(wait)
	for {
		f.mu.Lock()
		events, changed := feed.events, feed.changed
		f.mu.Unlock()
		newer := newerThan(events, since)
		if len(newer) == 0 && wait > 0 {
			select {
			case <-changed:
				continue
			case <-timeout:
			case <-r.Context().Done():
			}
		}
		w.Header().Set("Feed-Instance", f.instance)
		w.Header().Set("Feed-Sequence", fmt.Sprint(len(events)))
		body, _ := json.Marshal(newer)
		_, _ = w.Write(body)
		return
	}
}

func newerThan(events []json.RawMessage, since int64) []json.RawMessage {
	newer := []json.RawMessage{}
	for _, event := range events {
		var stamp struct {
			TimestampMS int64 `json:"timestamp_ms"`
		}
		if json.Unmarshal(event, &stamp) == nil && stamp.TimestampMS > since {
			newer = append(newer, event)
		}
	}
	return newer
}

// workDir holds what a run makes; it is removed at the end.
var workDir string
