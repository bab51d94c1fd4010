package main

import (
	"bufio"
	"bytes"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/browsertest"
	"switchyard/internal/pgtest"
	"switchyard/internal/waittest"
)

// Tests of processes run this test binary as switchyard.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_MAIN") != "" {
		main()
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // children inherit no SIGHUP that nohup has made ignored
	os.Exit(pgtest.Run(func() int { return browsertest.Run(m) }))
}

// process is a running switchyard.
type process struct {
	*exec.Cmd
	url    string // the printed address
	bearer string // the token of requests, "" for none
	said   string // its output up to there
	stderr waittest.Log
	ended  chan struct{} // closed when it has ended
}

// switchyard returns a command with a separate home directory. "DIR" in args is replaced by dir.
func switchyard(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "DIR", dir)
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{"TEST_MAIN=1", "HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH")}
	return cmd
}

// refused runs a command that must fail at once, and returns its exit status and output.
func refused(t *testing.T, cmd *exec.Cmd) (status int, says string) {
	t.Helper()
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	if stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("%v: a refusal is one line on stderr, got %q and %q", cmd.Args[1:], &stdout, &stderr)
	}
	return cmd.ProcessState.ExitCode(), stderr.String()
}

// launch starts a process, which ends with the test.
func launch(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	if testing.Short() {
		t.Skip("runs a process")
	}
	p := &process{Cmd: cmd, ended: make(chan struct{})}
	p.Stderr = &p.stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(p.ended); _ = p.Wait() }()
	t.Cleanup(func() {
		p.Process.Kill()
		<-p.ended
		if strings.Contains(p.stderr.String(), "DATA RACE") || strings.Contains(p.stderr.String(), "panic") {
			t.Errorf("stderr: %s", &p.stderr)
		}
	})
	return p
}

// start starts a gateway and returns when it is up.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	stdout, write := io.Pipe()
	cmd.Stdout = write
	p := launch(t, cmd)
	go func() { <-p.ended; write.Close() }()
	lines := bufio.NewScanner(stdout)
	served := false
	for !served && lines.Scan() {
		p.said += lines.Text() + "\n"
		p.url, served = strings.CutPrefix(lines.Text(), "Switchyard serves ")
	}
	go io.Copy(io.Discard, stdout)
	if !served {
		<-p.ended
		t.Fatalf("did not start: %s", &p.stderr)
	}
	return p
}

// stop sends a signal and returns the exit status and how long the process took to end.
func (p *process) stop(t *testing.T, signal os.Signal) (status int, took time.Duration) {
	t.Helper()
	begin := time.Now()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatalf("does not end after %v: %s", signal, &p.stderr)
	}
	return p.ProcessState.ExitCode(), time.Since(begin)
}

// endWithCommand makes an agent end with the test as it should: killed, it would leave its command running.
func (p *process) endWithCommand(t *testing.T) {
	t.Cleanup(func() {
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		<-p.ended
	})
}

// logged returns when the process logged a line with this text.
func (p *process) logged(t *testing.T, text string) time.Time {
	t.Helper()
	for line := range strings.Lines(p.stderr.String()) {
		if rest, ok := strings.CutPrefix(line, "time="); ok && strings.Contains(line, text) {
			stamp, _, _ := strings.Cut(rest, " ")
			at, err := time.Parse(time.RFC3339, stamp)
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
	t.Fatalf("%q is not in %s", text, &p.stderr)
	return time.Time{}
}

// connections makes one request per connection: an unused connection would delay the end of its server for 5 s.
var connections = &http.Transport{DisableKeepAlives: true}

func (p *process) do(t *testing.T, method, path, body string) (status int, text string) {
	t.Helper()
	status, text, err := p.ask(method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return status, text
}

func (p *process) ask(method, path, body string) (status int, text string, err error) {
	request, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	if p.bearer != "" {
		request.Header.Set("Authorization", "Bearer "+p.bearer)
	}
	response, err := connections.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return response.StatusCode, string(data), err
}

// dataDir returns the directory of --data.
func (p *process) dataDir() string {
	for _, arg := range p.Args {
		if dir, ok := strings.CutPrefix(arg, "--data="); ok {
			return dir
		}
	}
	return ""
}

// await waits until the metrics have a line.
func (p *process) await(t *testing.T, line string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for {
		_, text := p.do(t, "GET", "/metrics", "")
		if strings.Contains(text, "\n"+line+"\n") {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%q does not come to be in %s", line, text)
		}
	}
}

// hold begins a request whose body is never complete.
func (p *process) hold(t *testing.T) net.Conn {
	t.Helper()
	address := strings.TrimPrefix(p.url, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_, err = io.WriteString(conn, "POST /api/gateway/switch HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n') // the handler reads
	if err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err)
	}
	return conn
}

// refuses waits until the process accepts no new connections.
func (p *process) refuses(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			return
		}
		conn.Close()
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("still takes connections")
		}
	}
}

func TestHeadersMustArriveWithinTenSeconds(t *testing.T) {
	t.Parallel()
	p := start(t, switchyard(t, t.TempDir(), "gateway", "--listen=localhost:0", "--data=DIR/data"))
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX: "); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err = io.Copy(io.Discard, conn); err != nil {
		t.Errorf("not cut off after a minute: %v", err)
	}
}

func TestADataDirectoryBelongsToOneGateway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data"))
	status, says := refused(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data"))
	if status != 1 || !strings.Contains(says, p.dataDir()+" is in use by another running gateway") {
		t.Errorf("the second: %d, %s", status, says)
	}
	if status, _ := p.do(t, "GET", "/readyz", ""); status != 200 {
		t.Errorf("the first is disturbed: %d", status)
	}
}

func TestAKilledGatewayHasWhatItAcknowledged(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		dir := t.TempDir()
		begin := func() *process {
			return on.start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data"))
		}
		p := begin()
		if status, text := p.do(t, "POST", "/api/gateway/projects", `{"name":"alpha","url":"http://127.0.0.1:1"}`); status != 200 {
			t.Fatal(status, text)
		}
		p.stop(t, syscall.SIGKILL)
		p = begin()
		if _, text := p.do(t, "GET", "/api/gateway", ""); text != `{"active":null,"projects":[{"name":"alpha","url":"http://127.0.0.1:1"}]}` {
			t.Errorf("after the restart: %s", text)
		}
	})
}

func TestEverythingIsTheOwnersUnderAnyUmask(t *testing.T) {
	for _, umask := range []string{"000", "022", "0777"} {
		t.Run(umask, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			gateway := switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/a/data")
			shell := exec.Command("sh", append([]string{"-c", `umask "$0" && exec "$@"`, umask}, gateway.Args...)...)
			shell.Env = gateway.Env
			p := start(t, shell)
			if status, text := p.do(t, "POST", "/api/gateway/projects", `{"name":"alpha","url":"http://127.0.0.1:1"}`); status != 200 {
				t.Fatal(status, text)
			}
			seen := 0
			filepath.WalkDir(filepath.Join(dir, "a"), func(path string, entry fs.DirEntry, err error) error {
				if err != nil {
					t.Error(err)
					return nil
				}
				info, err := entry.Info()
				if err != nil {
					t.Error(err)
					return nil
				}
				want := fs.FileMode(0o600)
				if entry.IsDir() {
					want = 0o700
				}
				if info.Mode().Perm() != want {
					t.Errorf("%s has mode %o", path, info.Mode().Perm())
				}
				seen++
				return nil
			})
			if seen < 6 {
				t.Errorf("saw only %d files", seen)
			}
		})
	}
}

func TestAnExistingDataDirectoryIsClosedIfItIsOurs(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want fs.FileMode
	}{"empty": {"", 0o700}, "with a database": {"switchyard.db", 0o700}, "somebody's": {"thesis.txt", 0o755}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			os.Mkdir(dir, 0o755)
			if c.file != "" {
				os.WriteFile(filepath.Join(dir, c.file), nil, 0o644)
			}
			unlock, err := openDataDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			unlock()
			if info, _ := os.Stat(dir); info.Mode().Perm() != c.want {
				t.Errorf("mode %o, want %o", info.Mode().Perm(), c.want)
			}
		})
	}
}

func TestAnExistingConfigurationDirectoryIsClosedIfItHoldsSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want fs.FileMode
	}{
		"ours":                  {nil, 0o700},
		"secrets are elsewhere": {[]string{"--credentials=DIR/c.json", "--bot-config=DIR/b.toml"}, 0o755},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			own := filepath.Join(dir, "home", ".config", "switchyard")
			os.MkdirAll(own, 0o755)
			os.Chmod(own, 0o755) // whatever the umask
			os.WriteFile(filepath.Join(own, "switchyard.toml"), []byte("[gateway]\nlisten = 'localhost:0'\n"), 0o644)
			before, _ := os.Stat(dir)
			start(t, switchyard(t, dir, append([]string{"gateway"}, c.args...)...))
			if info, err := os.Stat(own); err != nil || info.Mode().Perm() != c.want {
				t.Errorf("mode %v, %v, want %o", info.Mode(), err, c.want)
			}
			if after, _ := os.Stat(dir); after.Mode() != before.Mode() {
				t.Errorf("the mode of another directory is %v, was %v", after.Mode(), before.Mode())
			}
		})
	}
}

func TestTheAdminTokenReachesNoLog(t *testing.T) {
	t.Parallel()
	cmd := switchyard(t, t.TempDir(), "gateway", "--listen=localhost:0", "--data=DIR/data", "--log-format=json")
	cmd.Env = append(cmd.Env, "SWITCHYARD_ADMIN_TOKEN=canary-4711")
	p := start(t, cmd)
	request, _ := http.NewRequestWithContext(t.Context(), "GET", p.url+"/api/gateway", nil)
	for token, want := range map[string]int{"canary-4711": 200, "canary-wrong": 401} {
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d, want %d", token, response.StatusCode, want)
		}
	}
	p.stop(t, syscall.SIGTERM)
	if says := p.stderr.String(); strings.Contains(says, "canary") || !strings.HasPrefix(says, "{") {
		t.Errorf("stderr: %s", says)
	}
}
