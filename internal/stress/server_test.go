//go:build stress

package stress

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// build builds the program and returns its path.
func build(t *testing.T, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "switchyard")
	args := append([]string{"build", "-o", program}, append(flags, "switchyard/cmd/switchyard")...)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	return program
}

// server is a program that is killed and restarted at the same address.
type server struct {
	t       *testing.T
	command []string
	log     *os.File // stderr of all its processes
	url     string
	lives   []life
	current *exec.Cmd
	mayFail bool     // whether errors in its log are expected
	more    []string // additional environment variables
}

// life is a time in which a server was certainly up.
type life struct{ began, ended time.Time }

// forever is the end of a life that has not ended.
var forever = time.Unix(1<<40, 0)

// loopback returns an address that stays free while nobody listens there: outgoing connections come from 127.0.0.1.
func loopback(t *testing.T, n int) string {
	t.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.77.0.%d:0", n))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func newServer(t *testing.T, name, address string, command ...string) *server {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, command: append(command, "--listen", address), log: log, url: "http://" + address}
	t.Cleanup(func() {
		if s.current != nil {
			s.kill()
		}
		text, err := os.ReadFile(log.Name())
		if err != nil || strings.Contains(string(text), "panic") || strings.Contains(string(text), "level=ERROR") && !s.mayFail {
			t.Errorf("%s: %v: %s", name, err, text)
		}
	})
	return s
}

// start starts the server and returns when it is up.
func (s *server) start() {
	s.t.Helper()
	s.current = exec.Command(s.command[0], s.command[1:]...)
	s.current.Env = append([]string{"HOME=" + filepath.Dir(s.log.Name()), "PATH=" + os.Getenv("PATH")}, s.more...)
	s.current.Stderr = s.log
	stdout, err := s.current.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.current.Start(); err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "Switchyard serves") {
		s.t.Fatalf("%v did not start: %q, %v, see %s", s.command[1:], line, err, s.log.Name())
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	s.lives = append(s.lives, life{time.Now(), forever})
}

// kill is kill -9.
func (s *server) kill() {
	s.t.Helper()
	s.lives[len(s.lives)-1].ended = time.Now()
	if err := s.current.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	_ = s.current.Wait() // killed
	s.current = nil
}

// served reports whether the server was up from a time on for at least duration.
func (s *server) served(from time.Time, duration time.Duration) bool {
	for _, l := range s.lives {
		if !from.Before(l.began) && from.Add(duration).Before(l.ended) {
			return true
		}
	}
	return false
}

// processorTime returns how much the process has taken so far.
func (s *server) processorTime() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.current.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// files returns the number of files and sockets that the server has open.
func (s *server) files() int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.current.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	return len(entries)
}
