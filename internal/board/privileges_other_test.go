//go:build unix && !linux

package board

import (
	"os"
	"testing"
)

// withoutPrivileges wants an ordinary user: here a process cannot become one for one thread only.
func withoutPrivileges(t *testing.T, _ string) {
	t.Helper()
	if os.Getuid() == 0 {
		t.Fatal("this test cannot be run by root")
	}
}
