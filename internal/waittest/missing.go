package waittest

import (
	"os"
	"os/exec"
	"testing"
)

// Missing ends a test for want of what is not installed. make test installs it and sets CI, as continuous
// integration does: there the test fails; a plain go test skips it and says what it would need.
func Missing(t testing.TB, what any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%v: internal/tools/test-deps.sh installs it", what)
	}
	t.Skipf("%v: make test installs it", what)
}

// Program returns the path of a program that is needed: without it Missing ends the test.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, err)
	}
	return path
}
