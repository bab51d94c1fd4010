package supervise

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff computes the pauses between attempts: they double from First up to Max, and each is shortened by a random
// amount of up to half, so that callers that failed together do not retry together.
type Backoff struct {
	First, Max time.Duration
	pause      time.Duration // the last one, before it was shortened
}

// Next returns the next pause, which is positive and at most Max.
func (b *Backoff) Next() time.Duration {
	b.pause = min(max(2*b.pause, b.First), b.Max)
	return b.pause - rand.N(b.pause/2+1)
}

// Reset starts again from First, after a success.
func (b *Backoff) Reset() { b.pause = 0 }

// Sleep waits for d. It returns false if ctx ends first.
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
