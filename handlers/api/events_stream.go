package api

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

const (
	// streamComment is the silence after which a comment is sent to keep the connection alive.
	streamComment = 15 * time.Second
	// streamPatience is how long a write may block before the client is disconnected. It reconnects with the id of its
	// last event.
	streamPatience = 10 * time.Second
	// streamPage is the number of events that are read at once, and streamBytes their size: as much as a client that reads
	// nothing holds until it is disconnected.
	streamPage, streamBytes = 200, 256 << 10
	// streamWrite is the number of buffered bytes after which they are written.
	streamWrite = 64 << 10
)

// StreamEvents sends the merged stream as server-sent events, from a position or from now on, until the client
// disconnects or cannot keep up, or the server stops.
func (a *API) StreamEvents(w http.ResponseWriter, r *http.Request) error {
	q, err := a.streamQuery(r)
	if err == nil {
		err = q.Check()
	}
	if err == nil {
		err = a.service.Events.Available()
	}
	if err != nil {
		return err
	}
	ctx, release, err := a.held.Hold(r)
	if err != nil {
		return err
	}
	defer release()
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would buffer events
	if r.Method == http.MethodHead {
		return nil
	}
	defer a.metrics.StreamOpened()()
	comment := time.NewTicker(streamComment)
	defer comment.Stop()
	control := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	send := func(text []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(streamPatience)) // every connection can
		_, err := w.Write(text)
		return err == nil && control.Flush() == nil
	}
	if !send(appendPosition(nil, q.After)) { // a client that is disconnected before its first event resumes there
		return nil
	}
	for ctx.Err() == nil {
		changed, last := a.service.Events.Changed(), a.service.Events.LastID()
		page, err := a.service.Events.Page(ctx, q)
		away := err != nil && a.service.Events.Available() != nil // the stream stays open until the database is back
		if err != nil && !away {
			if ctx.Err() == nil {
				a.LogCause(r, err) // the status has been sent; the client reconnects
			}
			return nil
		}
		if !sendEvents(page.Events, send) {
			return nil
		}
		if n := len(page.Events); n > 0 {
			q.After = page.Events[n-1].ID
		}
		if page.More {
			continue
		}
		if !away {
			q.After = max(q.After, last) // every selected event up to there was sent
		}
		select {
		case <-changed:
		case <-comment.C:
			if !send([]byte(":\n\n")) {
				return nil
			}
		case <-ctx.Done():
		}
	}
	return nil
}

// streamQuery returns where the stream begins and what it selects. Last-Event-ID takes precedence over the position in
// the address, which browsers send unchanged when they reconnect.
func (a *API) streamQuery(r *http.Request) (domain.EventQuery, error) {
	query := web.ParseQuery(r)
	q := domain.EventQuery{
		Limit: streamPage, Bytes: streamBytes, Project: query.Get("project"), Type: domain.EventType(query.Get("type")),
		After: query.Number("after", a.service.Events.LastID(), 0, math.MaxInt64),
	}
	if id := r.Header.Get("Last-Event-ID"); id != "" && query.Err() == nil {
		var err error
		if q.After, err = strconv.ParseInt(id, 10, 64); err != nil || q.After < 0 {
			return q, domain.Errorf(domain.Invalid, "Last-Event-ID: must be an id of this stream")
		}
	}
	return q, query.Err()
}

// appendPosition appends an id without data: clients remember it, but see no event.
func appendPosition(b []byte, id int64) []byte {
	b = append(b, "id: "...)
	b = strconv.AppendInt(b, id, 10)
	return append(b, "\n\n"...)
}

// sendEvents sends events as server-sent events. A record has no line breaks. It returns false when the client is gone.
func sendEvents(events []domain.Event, send func([]byte) bool) bool {
	var b []byte
	for i, e := range events {
		b = append(b, "id: "...)
		b = strconv.AppendInt(b, e.ID, 10)
		b = append(b, "\ndata: "...)
		b = e.AppendJSON(b)
		b = append(b, "\n\n"...)
		if len(b) < streamWrite && i < len(events)-1 {
			continue
		}
		if !send(b) {
			return false
		}
		b = b[:0]
	}
	return true
}
