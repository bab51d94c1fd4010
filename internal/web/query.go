package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"switchyard/internal/domain"
)

// MaxWait is the longest that a request is held; longer waits are shortened to it.
const MaxWait = time.Minute

// Query is a request's query. Like a Body's, its first error stays: it is Invalid and names the parameter.
type Query struct {
	url.Values
	firstError
}

func ParseQuery(r *http.Request) *Query {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return &Query{firstError: firstError{domain.Errorf(domain.Invalid, "the query is malformed")}}
	}
	return &Query{Values: values}
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

// Zone reads the name of a time zone, absent when the parameter is missing or empty.
func (q *Query) Zone(absent *time.Location) *time.Location {
	name := q.Get("tz")
	if name == "" {
		return absent
	}
	zone, known := domain.ParseZone(name)
	if !known {
		q.fail("tz: must be the name of a time zone, such as Europe/Vienna")
		return absent
	}
	return zone
}

// Flow reads a query about the flow of work, in the zone absent unless another is given. A project named twice counts
// once.
func (q *Query) Flow(absent *time.Location) domain.FlowQuery {
	number := func(name string, absent, low, high int) int {
		return int(q.Number(name, int64(absent), int64(low), int64(high)))
	}
	projects := slices.Compact(slices.Sorted(slices.Values(q.Values["project"])))
	return domain.FlowQuery{
		Projects: projects, Zone: q.Zone(absent),
		Days:  number("days", domain.FlowDays, domain.MinFlowDays, domain.MaxFlowDays),
		Ahead: number("ahead", domain.FlowAhead, domain.MinFlowAhead, domain.MaxFlowAhead),
		Items: number("items", 0, domain.MinFlowItems, domain.MaxFlowItems),
	}
}

// Cost reads a query about costs, in the zone absent unless another is given.
func (q *Query) Cost(absent *time.Location) domain.CostQuery {
	return domain.CostQuery{
		Projects: slices.Compact(slices.Sorted(slices.Values(q.Values["project"]))), Zone: q.Zone(absent),
		Days: int(q.Number("days", domain.CostDays, domain.MinCostDays, domain.MaxCostDays)),
	}
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
