package poll

import (
	"math/rand/v2"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
)

// minPause is the least time from one read to the next: one feed that never falls silent costs no more than 500 a second.
const minPause = 2 * time.Millisecond

// movedPause is the least time after an answer that only says that the pipeline is another one.
const movedPause = 50 * time.Millisecond

// pace is when a feed is read next.
type pace struct {
	interval time.Duration
	// wait is how long the server is asked to hold its answer: not at all at first, since whether it still has the same
	// buffer must be known at once.
	wait   time.Duration
	opened time.Time // when the server's current buffer was first read
	moved  bool      // the pipeline is another one than before
}

// pause returns the time from the beginning of a read, which led from one position to another, to the next read. That
// follows at once only if this one promises something. A server that answers early with nothing, repeats itself or has a
// new buffer each time is read at the interval.
func (p *pace) pause(answer upstream.FeedAnswer, from, to domain.FeedCursor, began time.Time) time.Duration {
	pause := p.interval
	newBuffer := answer.Instance != from.Instance
	switch {
	case answer.Left > 0:
		pause = minPause
	case answer.Instance == "":
	case newBuffer && began.Sub(p.opened) > p.interval,
		!newBuffer && to.Since > from.Since,
		!newBuffer && p.wait == 0:
		pause = minPause
	case p.moved:
		pause = min(pause, movedPause)
	}
	if newBuffer {
		p.opened = began
	}
	if answer.Instance != "" {
		p.wait = longPoll
		pause = min(pause, longPoll)
	}
	return pause - rand.N(pause/4+1) // so that feeds do not keep step
}
