// Package waittest helps tests of concurrent code: it waits for a condition, collects a log, and connects in memory.
package waittest

import (
	"testing"
	"time"
)

// Until waits until happened returns true, and fails the test with what if it does not within two minutes.
func Until(t testing.TB, what string, happened func() bool) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.After(2 * time.Minute); !happened(); {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("did not happen within two minutes: %s", what)
		}
	}
}
