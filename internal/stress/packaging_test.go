//go:build stress

package stress

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// maxProgram is the size of the program in bytes that make bench names as its goal.
const maxProgram = 32 << 20

func TestTwoDirectoriesBuildTheSameBytes(t *testing.T) {
	const root = "../.."
	list, err := exec.Command("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	for path := range strings.FieldsSeq(string(list)) {
		data, err := os.ReadFile(filepath.Join(root, path))
		if os.IsNotExist(err) { // removed, and not committed yet
			continue
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(elsewhere, path)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(elsewhere, path), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var programs [2][]byte
	for i, dir := range []string{root, elsewhere} {
		program := filepath.Join(t.TempDir(), "switchyard")
		command := exec.Command("go", "build", "-trimpath", "-buildvcs=false",
			"-tags", "nethttpomithttp2,nopgxregisterdefaulttypes", "-ldflags=-s -w", "-o", program, "./cmd/switchyard")
		command.Dir = dir
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if programs[i], err = os.ReadFile(program); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Error("the directory of the build shows in the program")
	}
	if size := len(programs[0]); size > maxProgram {
		t.Errorf("the program has %d bytes, of %d at most", size, maxProgram)
	}
}

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
