package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// build returns the path of the program, built once for all tests.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "switchyard-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "switchyard")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
	}
	return path, err
})

func TestMain(m *testing.M) {
	status := m.Run()
	if path, err := build(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(status)
}

// program is the built program at work. It ends with its test.
type program struct {
	t       *testing.T
	command *exec.Cmd
	url     string // where it serves, for a program that does
	output  *lockedBuffer
	ended   chan struct{}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// launch starts the program in an environment of its own, below home, and does not wait for anything.
func launch(t *testing.T, home string, args ...string) *program {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, command: exec.Command(path, args...), output: &lockedBuffer{}, ended: make(chan struct{})}
	p.command.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	p.command.Dir = home
	p.command.Stderr = p.output
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	serving := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			p.output.Write(append(lines.Bytes(), '\n'))
			if _, url, found := strings.Cut(lines.Text(), " serves "); found {
				select {
				case serving <- url:
				default:
				}
			}
		}
		_ = p.command.Wait()
		close(serving)
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s printed:\n%s", strings.Join(args, " "), p.output)
		}
	})
	p.url = "" // set by serve
	if len(args) > 0 && (args[0] == "gateway" || args[0] == "project" || args[0] == "up") {
		select {
		case url, ok := <-serving:
			if !ok {
				t.Fatalf("%s ended at once:\n%s", strings.Join(args, " "), p.output)
			}
			p.url = url
		case <-time.After(20 * time.Second):
			t.Fatalf("%s does not serve:\n%s", strings.Join(args, " "), p.output)
		}
	}
	return p
}

// kill ends the program at once and returns when it is gone.
func (p *program) kill() {
	_ = p.command.Process.Signal(syscall.SIGKILL)
	<-p.ended
}

// stop asks the program to end and returns its exit status.
func (p *program) stop() int {
	p.t.Helper()
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(15 * time.Second):
		p.t.Fatalf("did not end within 15 s of SIGTERM")
	}
	return p.command.ProcessState.ExitCode()
}

// get asks for a path and decodes the answer, which must be 200 and JSON, into v.
func (p *program) get(path string, v any) {
	p.t.Helper()
	response, err := http.Get(p.url + path)
	if err != nil {
		p.t.Fatal(err)
	}
	p.read(path, response, v)
}

// post sends v as JSON and decodes the answer, which must be 200, into answer.
func (p *program) post(path string, v, answer any) {
	p.t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := http.Post(p.url+path, "application/json", bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	p.read(path, response, answer)
}

func (p *program) read(path string, response *http.Response, v any) {
	p.t.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %s %v %s", path, response.Status, err, body)
	}
	if err := json.Unmarshal(body, v); err != nil {
		p.t.Fatalf("%s: %v in %s", path, err, body)
	}
}

// until waits until holds is true.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("did not come about: %s", what)
		}
	}
}
