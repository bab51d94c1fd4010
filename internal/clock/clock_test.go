package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/clock"
)

func TestWithoutAnotherClockTheTimeIsThisMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if now := clock.Now(); !now.Equal(time.Now()) {
			t.Errorf("it is %v, want %v", now, time.Now())
		}
	})
}

// TestAClockIsFollowedAsFarAsReadingsTell uses readings that take two seconds.
func TestAClockIsFollowedAsFarAsReadingsTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock.Clock
		read := func(ahead time.Duration, want time.Duration) {
			t.Helper()
			asked := time.Now()
			time.Sleep(time.Second)
			said := time.Now().Add(ahead)
			time.Sleep(time.Second)
			c.Read(asked, time.Now(), said)
			time.Sleep(time.Hour)
			if got := c.Skew(); got != want {
				t.Errorf("after a reading %v ahead it is %v ahead, want %v", ahead, got, want)
			}
		}
		read(time.Hour, time.Hour)
		read(time.Hour+time.Second, time.Hour) // consistent with the reading before
		read(time.Hour-time.Second, time.Hour)
		read(time.Hour+3*time.Second, time.Hour+2*time.Second) // at least
		read(-time.Hour, -time.Hour+time.Second)
		read(-time.Hour, -time.Hour+time.Second)
		read(0, -time.Second)
	})
}
