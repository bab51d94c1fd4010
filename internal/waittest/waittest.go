// Package waittest helps tests of concurrent code: it waits for a condition, collects a log, and connects in memory.
package waittest

import (
	"testing"
	"time"
)

// Until waits until happened returns true, and fails the test with what if it does not within two minutes. It asks less
// often the longer it waits and the longer happened takes, so that tests beside it have the processor: at least every
// 200 ms.
func Until(t testing.TB, what string, happened func() bool) {
	t.Helper()
	for began := time.Now(); ; {
		asked := time.Now()
		if happened() {
			return
		}
		waited, took := time.Since(began), time.Since(asked)
		if waited > 2*time.Minute {
			t.Fatalf("did not happen within two minutes: %s", what)
		}
		time.Sleep(min(max(5*time.Millisecond, waited/50, 4*took), 200*time.Millisecond))
	}
}
