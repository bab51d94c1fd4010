package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/domain"
)

func TestASignalDuringTheStartIsACleanEnd(t *testing.T) {
	told, tell := context.WithCancel(t.Context())
	tell()
	for _, command := range []string{"gateway", "up", "up DIR/board"} {
		dir := t.TempDir()
		t.Setenv("HOME", dir)
		os.Mkdir(filepath.Join(dir, "board"), 0o700)
		var stdout, stderr bytes.Buffer
		args := strings.Fields(strings.ReplaceAll(command+" --listen=localhost:0 --data=DIR/data", "DIR", dir))
		if status := run(told, args, strings.NewReader(""), &stdout, &stderr); status != 0 || stderr.Len() > 0 {
			t.Errorf("%s: %d, %s", command, status, &stderr)
		}
	}
}

func TestSignalsEndAGatewayCleanly(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p := start(t, switchyard(t, t.TempDir(), "gateway", "--listen=localhost:0", "--data=DIR/data"))
			// Long-polls must not delay the end.
			var waiting sync.WaitGroup
			for path, want := range map[string]string{"/api/gateway/events?wait=60s": `{"events":[],"next":0}`, "/api/gateway/events/stream": "id: 0\n\n"} {
				waiting.Go(func() {
					if status, text, err := p.ask("GET", path, ""); status != 200 || text != want || err != nil {
						t.Errorf("%s: %d %q %v", path, status, text, err)
					}
				})
			}
			p.await(t, "switchyard_http_requests_in_flight 3") // the one that asks is the third
			if status, _ := p.stop(t, signal); status != 0 || strings.Contains(p.stderr.String(), "cut off") {
				t.Errorf("ended with %d, want 0 and nothing cut off; %s", status, &p.stderr)
			}
			waiting.Wait()
			if _, err := os.Stat(filepath.Join(p.dataDir(), "switchyard.db-wal")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the database was not closed: %v", err)
			}
		})
	}
}

func TestAStopWaitsForRequestsTenSecondsAtMost(t *testing.T) {
	t.Parallel()
	p := start(t, switchyard(t, t.TempDir(), "gateway", "--listen=localhost:0", "--data=DIR/data"))
	p.hold(t)
	if status, took := p.stop(t, syscall.SIGTERM); status != 0 || took > 25*time.Second || took < 5*time.Second || !strings.Contains(p.stderr.String(), "cut off") {
		t.Errorf("ended with %d after %v, want 0 after almost 10 s; %s", status, took, &p.stderr)
	}
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t, switchyard(t, t.TempDir(), "gateway", "--listen=localhost:0", "--data=DIR/data"))
	p.hold(t)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.refuses(t)
	if status, took := p.stop(t, syscall.SIGTERM); status != exitFailure { // 0 is the end of the drain
		t.Errorf("ended with %d after %v, want %d at once", status, took, exitFailure)
	}
}

func TestAHangupEndsAnAgentWithItsCommand(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.run("--token", s.token())
	s.assign(s.wait("joined", func(a domain.Agent) bool { return a.Label == "builder-1" }).ID, "alpha")
	command := s.job(1)
	if status, _ := p.stop(t, syscall.SIGHUP); status != 0 || command.runs() {
		t.Errorf("status %d, the command runs: %v; %s", status, command.runs(), &p.stderr)
	}
}

func TestAHangupThatIsIgnoredStaysIgnored(t *testing.T) {
	t.Parallel()
	cmd := switchyard(t, t.TempDir(), "gateway", "--listen=localhost:0", "--data=DIR/data")
	shell := exec.Command("sh", append([]string{"-c", `trap '' HUP && exec "$0" "$@"`}, cmd.Args...)...)
	shell.Env = cmd.Env
	p := start(t, shell)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, mask, _ := strings.Cut(string(status), "\nSigIgn:\t")
	mask, _, _ = strings.Cut(mask, "\n")
	if ignored, err := strconv.ParseUint(mask, 16, 64); err != nil || ignored&1 == 0 { // SIGHUP is 1
		t.Errorf("ignores the signals %q", mask)
	}
}
