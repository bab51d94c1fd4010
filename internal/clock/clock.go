// Package clock returns the time that all gateways on a shared database agree on: the database's. The clocks of their
// machines may be wrong. All times that are stored, or compared with stored ones, come from it; durations are measured
// locally.
package clock

import (
	"sync/atomic"
	"time"
)

// Clock is an estimate of another machine's clock. The zero Clock is this machine's. It is safe for concurrent use.
type Clock struct{ last atomic.Pointer[reading] }

// reading is the other clock's time at a time of this machine's. The latter has a monotonic part, so that setting this
// machine's clock makes no difference.
type reading struct{ here, there time.Time }

// Read records that the other clock said a time between two times of this machine's. An earlier reading is kept unless
// the new one contradicts it, so that the clock does not waver with network delays.
func (c *Clock) Read(asked, answered, said time.Time) {
	said = said.Round(0).Local()
	last := c.last.Load()
	next := &reading{answered, said}
	switch {
	case last == nil:
		next.here = asked.Add(answered.Sub(asked) / 2)
	case c.Of(asked).After(said):
		next.here = asked
	case !c.Of(answered).Before(said):
		return
	}
	c.last.CompareAndSwap(last, next) // if it fails, another goroutine has just read the clock
}

// Of converts a time of this machine's clock to the other's.
func (c *Clock) Of(t time.Time) time.Time {
	last := c.last.Load()
	if last == nil {
		return t
	}
	return last.there.Add(t.Sub(last.here))
}

// Skew returns by how much the other clock is ahead of this machine's, negative if it is behind.
func (c *Clock) Skew() time.Duration {
	now := time.Now()
	return c.Of(now).Sub(now.Round(0))
}

// followed is nil for this machine's clock. The program sets no other package-level variable: like the clock of package
// time, a process has only one.
var followed atomic.Pointer[Clock]

// Follow makes Now and Of use c from now on.
func Follow(c *Clock) { followed.Store(c) }

func Now() time.Time { return Of(time.Now()) }

// Milli is Now in whole milliseconds, as times are stored.
func Milli() time.Time { return time.UnixMilli(Now().UnixMilli()) }

// Of converts a time of this machine's clock to the clock that Follow set.
func Of(t time.Time) time.Time {
	if c := followed.Load(); c != nil {
		return c.Of(t)
	}
	return t
}
