package handlers

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/feed"
)

// events answers with the events that are newer than since; for the first of them it may wait. The feed is asked by
// everyone all the time, so an answer makes only two allocations.
func (p *project) events(w http.ResponseWriter, r *http.Request) error {
	snapshot := p.Feed.Snapshot()
	since, wait, err := feedQuery(r.URL.RawQuery)
	if err == nil && wait > 0 && !snapshot.Has(since) {
		snapshot = p.await(r, since, wait)
	}
	header := w.Header()
	header["Feed-Instance"] = p.instance
	if err != nil {
		header.Set("Feed-Sequence", snapshot.SequenceText)
		return err
	}
	head, tail := snapshot.After(since)
	numbers := []string{strconv.Itoa(len(head) + len(tail)), snapshot.SequenceText}
	header["Content-Length"], header["Feed-Sequence"] = numbers[:1:1], numbers[1:]
	header["Content-Type"], header["Cache-Control"] = jsonMedia, noStore
	_, _ = w.Write(head) // the client may be gone
	if len(tail) > 0 {
		_, _ = w.Write(tail)
	}
	return nil
}

// await returns the first state of the feed that has something newer than since, or the one after wait, or when
// nobody waits any more.
func (p *project) await(r *http.Request, since uint64, wait time.Duration) *feed.Snapshot {
	ctx, cancel := longPollContext(r)
	defer cancel()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		snapshot := p.Feed.Snapshot()
		if snapshot.Has(since) {
			return snapshot
		}
		select {
		case <-snapshot.Replaced():
		case <-timeout.C:
			return snapshot
		case <-ctx.Done():
			return snapshot
		}
	}
}

// feedQuery reads since and wait from a query, without the map that parseQuery would make. Of a parameter that is
// there twice the first counts.
func feedQuery(raw string) (since uint64, wait time.Duration, err error) {
	var hasSince, hasWait bool
	for raw != "" && err == nil {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		name, value, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(name)
		value, valueErr := url.QueryUnescape(value)
		switch {
		case nameErr != nil || valueErr != nil || strings.Contains(pair, ";"):
			err = errQuery
		case name == "since" && !hasSince:
			hasSince = true
			if since, err = strconv.ParseUint(value, 10, 64); err != nil {
				err = domain.Errorf(domain.Invalid, "since: must be an unsigned 64-bit decimal number")
			}
		case name == "wait" && !hasWait:
			hasWait = true
			wait, err = parseWait(value)
		}
	}
	return since, wait, err
}
