package poll

import (
	"time"

	"switchyard/internal/upstream"
)

const (
	// recordsPerSecond is how much of one project is taken on average; what is more waits in its buffer. A record counts
	// once more for each whole KiB that it has.
	recordsPerSecond = 1000
	// burst is how much may come at once: twice what one read takes at most of records as they usually are.
	burst = 10_000
)

// allowance is a token bucket: how much may be taken of a project.
type allowance struct {
	used float64 // at the time at; over burst when too much was taken
	at   time.Time
}

// take notes what an answer cost and returns how long to wait before the next read.
func (a *allowance) take(answer upstream.FeedAnswer, now time.Time) time.Duration {
	cost := answer.Received - answer.Left
	for _, r := range answer.Records {
		cost += len(r.JSON) >> 10
	}
	a.used = max(a.used-now.Sub(a.at).Seconds()*recordsPerSecond, 0) + float64(cost)
	a.at = now
	return time.Duration(max(a.used-burst, 0) / recordsPerSecond * float64(time.Second))
}
