//go:build stress

package stress

import (
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestAPositionIndependentProgramRuns: packagers build it so. It once dropped its own relocated pages 2.5 s after the start.
func TestAPositionIndependentProgramRuns(t *testing.T) {
	t.Setenv("CGO_ENABLED", "0") // needs no other linker than Go's
	dir := t.TempDir()
	gateway := newServer(t, "gateway", loopback(t, 1), build(t, "-buildmode=pie"), "gateway", "--data", filepath.Join(dir, "data"))
	gateway.start()
	for began := time.Now(); time.Since(began) < 5*time.Second; {
		response, err := http.Get(gateway.url + "/readyz")
		if err != nil {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		response.Body.Close()
	}
	if err := gateway.current.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := gateway.current.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	gateway.current = nil
}
