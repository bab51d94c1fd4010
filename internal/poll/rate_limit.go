package poll

import (
	"time"

	"switchyard/internal/upstream"
)

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
