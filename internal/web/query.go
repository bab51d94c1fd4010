package web

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"switchyard/internal/domain"
)

// MaxWait is the longest that a request is held; one that asks for more is held for this long.
const MaxWait = time.Minute

// Query is the query of a request. Its methods return Invalid errors that name the parameter.
type Query struct{ url.Values }

// ParseQuery reads the query of r. A malformed one is Invalid.
func ParseQuery(r *http.Request) (Query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Query{}, domain.Errorf(domain.Invalid, "the query is malformed")
	}
	return Query{values}, nil
}

// Number returns a parameter that is a decimal number from low to high, absent where there is none.
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

// Wait returns how long the answer may be held, 0 without the parameter.
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

// FeedQuery is what the form of a feed takes.
type FeedQuery struct {
	Since    uint64        // the time after which events are asked for, in Unix milliseconds
	Wait     time.Duration // how long the answer may be held
	Pipeline string        // the version of the pipeline that the caller knows; "" when the answer is to wait for events alone
}

// ParseFeedQuery reads the query of a feed. It returns Invalid.
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
