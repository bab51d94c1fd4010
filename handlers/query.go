package handlers

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"switchyard/internal/domain"
)

// maxWait is the longest that a request is held; one that asks for more is held for this long.
const maxWait = time.Minute

// query is the query of a request. Its methods return Invalid errors that name the parameter.
type query struct{ url.Values }

var errQuery = domain.Errorf(domain.Invalid, "the query is malformed")

func parseQuery(r *http.Request) (query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return query{}, errQuery
	}
	return query{values}, nil
}

// number returns a parameter that is a decimal number from low to high, absent where there is none.
func (q query) number(name string, absent, low, high int64) (int64, error) {
	if !q.Has(name) {
		return absent, nil
	}
	n, err := strconv.ParseUint(q.Get(name), 10, 63) // takes no sign
	if err != nil || int64(n) < low || int64(n) > high {
		return 0, domain.Errorf(domain.Invalid, "%s: must be a number from %d to %d", name, low, high)
	}
	return int64(n), nil
}

// wait returns how long the answer may be held, 0 without the parameter.
func (q query) wait() (time.Duration, error) {
	if !q.Has("wait") {
		return 0, nil
	}
	return parseWait(q.Get("wait"))
}

// parseWait reads how long an answer may be held.
func parseWait(text string) (time.Duration, error) {
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 {
		return 0, domain.Errorf(domain.Invalid, "wait: must be a duration such as 10s or 1m30s")
	}
	return min(wait, maxWait), nil
}
