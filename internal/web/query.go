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

// Query is a request's query. The errors of its methods are Invalid and name the parameter.
type Query struct{ url.Values }

// ParseQuery parses the query of r. It returns Invalid for a malformed one.
func ParseQuery(r *http.Request) (Query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Query{}, domain.Errorf(domain.Invalid, "the query is malformed")
	}
	return Query{values}, nil
}

// Number returns a decimal number from low to high, or absent when the parameter is missing.
func (q Query) Number(name string, absent, low, high int64) (int64, error) {
	if !q.Has(name) {
		return absent, nil
	}
	n, err := strconv.ParseUint(q.Get(name), 10, 63) // takes no sign
	if err != nil || int64(n) < low || int64(n) > high {
		return 0, domain.Errorf(domain.Invalid, "%s: must be a number from %d to %d", name, low, high)
	}
	return int64(n), nil
}

// Wait returns how long the response may be held: at most MaxWait, and 0 without the parameter.
func (q Query) Wait() (time.Duration, error) {
	if !q.Has("wait") {
		return 0, nil
	}
	wait, err := time.ParseDuration(q.Get("wait"))
	if err != nil || wait < 0 {
		return 0, domain.Errorf(domain.Invalid, "wait: must be a duration such as 10s or 1m30s")
	}
	return min(wait, MaxWait), nil
}

// FeedQuery holds the parameters of a feed request.
type FeedQuery struct {
	Since uint64        // only events after this time, in Unix milliseconds
	Wait  time.Duration // how long the response may be held
	// Pipeline is the pipeline version that the caller knows; a newer one ends the wait. "" waits for events only.
	Pipeline string
}

// ParseFeedQuery parses the query of a feed request. It returns Invalid.
func ParseFeedQuery(r *http.Request) (q FeedQuery, err error) {
	query, err := ParseQuery(r)
	if err != nil {
		return q, err
	}
	if query.Has("since") {
		if q.Since, err = strconv.ParseUint(query.Get("since"), 10, 64); err != nil {
			return q, domain.Errorf(domain.Invalid, "since: must be an unsigned 64-bit decimal number")
		}
	}
	q.Pipeline = query.Get("pipeline")
	q.Wait, err = query.Wait()
	return q, err
}
