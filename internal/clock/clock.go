// Package clock tells the time by which several gateways work as one: that of the database that they share. The clocks of their
// machines may be wrong. Whatever is stored, and whatever is compared with what is stored, goes by it; how long something took
// does not.
package clock

import (
	"sync/atomic"
	"time"
)

// Clock is another machine's clock, as far as it was read. The zero Clock is this machine's. It is safe for concurrent use.
type Clock struct{ last atomic.Pointer[reading] }

// reading is what the other clock said at a time of this machine's, which has a monotonic part: that somebody sets this machine's
// clock makes no difference.
type reading struct{ here, there time.Time }

// Read takes account of what the other clock said between two times of this machine's. What was read before stays valid unless
// that contradicts it, so that the clock does not waver with the time that reading takes.
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
	c.last.CompareAndSwap(last, next) // else somebody else has just read it
}

// Of returns what the other clock said when this machine's said t.
func (c *Clock) Of(t time.Time) time.Time {
	last := c.last.Load()
	if last == nil {
		return t
	}
	return last.there.Add(t.Sub(last.here))
}

// Ahead returns by how much the other clock is ahead of this machine's, less than 0 where it is behind.
func (c *Clock) Ahead() time.Duration {
	now := time.Now()
	return c.Of(now).Sub(now.Round(0))
}

var followed atomic.Pointer[Clock] // nil for this machine's

// Follow makes c the clock by which this process goes.
func Follow(c *Clock) { followed.Store(c) }

// Now returns the present time.
func Now() time.Time { return Of(time.Now()) }

// Of returns which time it was when this machine's clock said t.
func Of(t time.Time) time.Time {
	if c := followed.Load(); c != nil {
		return c.Of(t)
	}
	return t
}
