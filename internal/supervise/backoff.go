package supervise

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff gives the pauses between attempts at something that fails: each is twice the one before, from First up to Max,
// and shortened by up to half at random, so that callers that failed together do not retry together.
type Backoff struct {
	First, Max time.Duration
	pause      time.Duration // the last one, before it was shortened
}

// Next returns the next pause: positive and never more than Max.
func (b *Backoff) Next() time.Duration {
	b.pause = min(max(2*b.pause, b.First), b.Max)
	return b.pause - rand.N(b.pause/2+1)
}

// Reset starts again from First, after a success.
func (b *Backoff) Reset() { b.pause = 0 }

// Sleep waits for d and reports whether it passed; false means that ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
