package api

import (
	"math"
	"net/http"
	"strconv"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

// ListEvents answers with a page of the merged stream: the events after a position, optionally waiting for one, or
// those before it.
func (a *API) ListEvents(w http.ResponseWriter, r *http.Request) error {
	query := web.ParseQuery(r)
	wait := query.Wait()
	q, next, err := eventQuery(query)
	if err != nil {
		return err
	}
	if q.Backward {
		wait = 0
	}
	ctx, release, err := a.held.HoldFor(r, wait)
	if err != nil {
		return err
	}
	defer release()
	page, err := a.service.Events.Wait(ctx, q, wait)
	if err != nil {
		return err
	}
	events := page.Events
	if len(events) > 0 {
		next = events[len(events)-1].ID
	}
	writeEvents(w, `{"events":[`, events, `],"next":`+strconv.FormatInt(next, 10)+`}`)
	return nil
}

// Feed answers in the format of a project server's feed: with those of the newest 500 records that are newer than
// since, optionally waiting for the first of them.
func (a *API) Feed(w http.ResponseWriter, r *http.Request) error {
	if domain.ActorOf(r.Context()).Forwarded {
		return domain.Errorf(domain.NotFound, "this is a gateway; other gateways cannot follow it")
	}
	q, err := web.ParseFeedQuery(r)
	if err != nil {
		return err
	}
	ctx, release, err := a.held.HoldFor(r, q.Wait)
	if err != nil {
		return err
	}
	defer release()
	events, err := a.service.Events.Since(ctx, q.Since, q.Wait)
	if err != nil {
		return err
	}
	writeEvents(w, `[`, events, `]`)
	return nil
}

// writeSize is the number of bytes after which the part of an answer encoded so far is written. It bounds the memory
// that a slow client can hold.
const writeSize = 256 << 10

// writeEvents writes events as the elements of a JSON array, between before and after.
func writeEvents(w http.ResponseWriter, before string, events []domain.Event, after string) {
	b := append(make([]byte, 0, 64+256*len(events)), before...)
	whole := true
	for i, e := range events {
		if i > 0 {
			b = append(b, ',')
		}
		b = e.AppendJSON(b)
		if len(b) < writeSize {
			continue
		}
		if whole {
			header := w.Header()
			header["Content-Type"], header["Cache-Control"] = web.JSONType, web.NoStore
			w.WriteHeader(http.StatusOK)
			whole = false
		}
		if _, err := w.Write(b); err != nil {
			return // the client is gone
		}
		b = b[:0]
	}
	b = append(b, after...)
	if whole {
		web.WriteEncoded(w, http.StatusOK, b)
		return
	}
	_, _ = w.Write(b)
}

// eventQuery returns which events of the merged stream the query selects, and the position in it.
func eventQuery(q *web.Query) (selected domain.EventQuery, position int64, err error) {
	selected = domain.EventQuery{
		Project: q.Get("project"), Type: domain.EventType(q.Get("type")), Backward: q.Has("before"),
		Limit: int(q.Number("limit", 200, 1, 1000)),
	}
	switch {
	case q.Err() != nil:
	case !selected.Backward:
		selected.After = q.Number("after", 0, 0, math.MaxInt64)
		position = selected.After
	case q.Has("after"):
		return selected, 0, domain.Errorf(domain.Invalid, "after and before are mutually exclusive")
	case q.Get("before") != "": // else the newest page
		position = q.Number("before", 0, 0, math.MaxInt64)
		selected.Before = max(position, 1) // ids begin at 1: nothing is before 0 either
	}
	return selected, position, q.Err()
}
