package web

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"switchyard/internal/domain"
)

// MaxWait is the longest that a request is held; longer waits are shortened to it.
const MaxWait = time.Minute

// Query is a request's query. Like a Body's, its first error stays: it is Invalid and names the parameter.
type Query struct {
	url.Values
	err error
}

func ParseQuery(r *http.Request) *Query {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return &Query{err: domain.Errorf(domain.Invalid, "the query is malformed")}
	}
	return &Query{Values: values}
}

// Err returns why the query or one of its parameters could not be read.
func (q *Query) Err() error { return q.err }

func (q *Query) fail(format string, args ...any) {
	if q.err == nil {
		q.err = domain.Errorf(domain.Invalid, format, args...)
	}
}

// Number reads a decimal number from low to high, absent when the parameter is missing.
func (q *Query) Number(name string, absent, low, high int64) int64 {
	if !q.Has(name) {
		return absent
	}
	n, err := strconv.ParseUint(q.Get(name), 10, 63) // takes no sign
	if err != nil || int64(n) < low || int64(n) > high {
		q.fail("%s: must be a number from %d to %d", name, low, high)
		return 0
	}
	return int64(n)
}

// Wait reads how long the response may be held: at most MaxWait, and 0 without the parameter.
func (q *Query) Wait() time.Duration {
	if !q.Has("wait") {
		return 0
	}
	wait, err := time.ParseDuration(q.Get("wait"))
	if err != nil || wait < 0 {
		q.fail("wait: must be a duration such as 10s or 1m30s")
		return 0
	}
	return min(wait, MaxWait)
}

// FeedQuery holds the parameters of a feed request.
type FeedQuery struct {
	Since uint64        // only events after this time, in Unix milliseconds
	Wait  time.Duration // how long the response may be held
	// Pipeline is the pipeline version that the caller knows; a newer one ends the wait. "" waits for events only.
	Pipeline string
}

// ParseFeedQuery returns Invalid.
func ParseFeedQuery(r *http.Request) (FeedQuery, error) {
	query := ParseQuery(r)
	q := FeedQuery{Pipeline: query.Get("pipeline")}
	if query.Has("since") {
		var err error
		if q.Since, err = strconv.ParseUint(query.Get("since"), 10, 64); err != nil {
			query.fail("since: must be an unsigned 64-bit decimal number")
		}
	}
	q.Wait = query.Wait()
	return q, query.Err()
}
