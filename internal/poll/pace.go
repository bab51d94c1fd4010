package poll

import (
	"math/rand/v2"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
)

// minPause is the least time from one read to the next: even the busiest feed is read at most 500 times a second.
const minPause = 2 * time.Millisecond

// movedPause is the least time to the next read after an answer that only says that the pipeline has changed.
const movedPause = 50 * time.Millisecond

type pace struct {
	interval time.Duration
	// wait is how long the server is asked to hold its answer: 0 at first, to find out at once whether it still has the
	// same buffer.
	wait   time.Duration
	opened time.Time // when the server's current buffer was first read
	moved  bool      // the pipeline has changed
}

// pause returns the time from the beginning of a read, which moved the position from one to another, to the next read.
// The next one follows at once only if more is to be expected. A server that answers early with nothing, repeats itself
// or has a new buffer each time is read at the interval.
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

const (
	// recordsPerSecond is how much is read of one project on average; the rest waits in its buffer. A record counts
	// once more for each whole KiB of its size.
	recordsPerSecond = 1000
	// burst is how much may be read at once: twice the most that one read returns of records of the usual size.
	burst = 10_000
)

// rateLimit is a token bucket that limits how much is read of a project.
type rateLimit struct {
	used float64 // at the time at; over burst when too much was read
	at   time.Time
}

// spend records what an answer cost and returns how long to wait before the next read.
func (l *rateLimit) spend(answer upstream.FeedAnswer, now time.Time) time.Duration {
	cost := answer.Received - answer.Left
	for _, r := range answer.Records {
		cost += len(r.JSON) >> 10
	}
	l.used = max(l.used-now.Sub(l.at).Seconds()*recordsPerSecond, 0) + float64(cost)
	l.at = now
	return time.Duration(max(l.used-burst, 0) / recordsPerSecond * float64(time.Second))
}
