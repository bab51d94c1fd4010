package main

import (
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestIdleStrangersShutNobodyOut: strangers open more connections than the process has descriptors. Without a limit a change would
// wait until the first of them time out; of three changes at least one is fast even on a busy machine.
func TestIdleStrangersShutNobodyOut(t *testing.T) {
	for _, descriptors := range []string{"64", "256"} {
		t.Run(descriptors, func(t *testing.T) {
			t.Parallel()
			var took []time.Duration
			for len(took) < 3 {
				took = append(took, changeAmongStrangers(t, descriptors))
				if slices.Min(took) <= headerLimit/2 {
					return
				}
			}
			t.Errorf("changes took %v", took)
		})
	}
}

// changeAmongStrangers returns how long a change takes.
func changeAmongStrangers(t *testing.T, descriptors string) time.Duration {
	t.Helper()
	gateway := switchyard(t, t.TempDir(), "gateway", "--listen=127.0.0.1:0", "--data=DIR/data")
	shell := exec.Command("sh", append([]string{"-c", `ulimit -n "$0" && exec "$@"`, descriptors}, gateway.Args...)...)
	shell.Env = gateway.Env
	p := start(t, shell)
	for range 300 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	began := time.Now()
	if status, text := p.do(t, "POST", "/api/gateway/projects", `{"name":"alpha","url":"http://127.0.0.1:1"}`); status != 200 {
		t.Errorf("a change meanwhile: %d %s", status, text)
	}
	return time.Since(began)
}
