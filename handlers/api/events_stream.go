package api

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
	"switchyard/internal/web"
)

const (
	// streamComment is the silence after which a comment is sent to keep the connection alive.
	streamComment = 15 * time.Second
	// streamPage is how many events are read at once, and streamBytes their size: as much as a client that reads
	// nothing holds until it is disconnected.
	streamPage, streamBytes = 200, 256 << 10
	// streamWrite is the number of buffered bytes after which they are written.
	streamWrite = 64 << 10
)

// StreamEvents sends the merged stream as server-sent events, from a position or from now on, until the client
// disconnects or cannot keep up, or the server stops.
func (a *API) StreamEvents(w http.ResponseWriter, r *http.Request) error {
	s, err := a.newStream(w, r)
	if err != nil {
		return err
	}
	release, err := a.held.Count(r)
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
	w.WriteHeader(http.StatusOK)
	// A client that is disconnected before its first event resumes at this position. net/http writes the header with it,
	// which takes so much stack that this goroutine's would double for as long as the stream lasts.
	sent := make(chan bool, 1)
	supervise.Go(a.Log, "stream", func() {
		defer close(sent)
		begin := fmt.Appendf(nil, "id: %d\n\n", s.query.After) // clients remember it, but see no event
		if s.reset {
			begin = fmt.Appendf(nil, "event: reset\ndata: {\"newest\": %d}\nid: %[1]d\n\n", s.query.After)
		}
		sent <- s.send(begin)
	})
	if !<-sent {
		return nil
	}
	stopping, ended := web.Ends(r)
	if err := s.run(r.Context(), stopping, ended); err != nil && r.Context().Err() == nil {
		a.LogCause(r, err) // the status has been sent; the client reconnects with the id of its last event
	}
	return nil
}

// newStream returns a stream with the start and selection that the request asks for. Last-Event-ID takes precedence
// over the position in the address, which browsers send unchanged when they reconnect. A position beyond the newest
// event, from an earlier database, means now.
func (a *API) newStream(w http.ResponseWriter, r *http.Request) (*stream, error) {
	query := web.ParseQuery(r)
	q := domain.EventQuery{
		Limit: streamPage, Bytes: streamBytes, Project: query.Get("project"), Type: domain.EventType(query.Get("type")),
		After: query.Number("after", a.service.Events.LastID(), 0, math.MaxInt64),
	}
	if id := r.Header.Get("Last-Event-ID"); id != "" && query.Err() == nil {
		var err error
		if q.After, err = strconv.ParseInt(id, 10, 64); err != nil || q.After < 0 {
			return nil, domain.Errorf(domain.Invalid, "Last-Event-ID: must be an id of this stream")
		}
	}
	if err := cmp.Or(query.Err(), q.Check()); err != nil {
		return nil, err
	}
	newest, reset, err := a.service.Events.Beyond(r.Context(), q.After)
	q.After = min(q.After, newest)
	return &stream{a, web.StreamWriter(w), http.NewResponseController(w), q, reset}, err
}

// stream serves one reader. Its methods have small frames: a silent stream keeps its stack.
type stream struct {
	*API
	to      io.Writer
	control *http.ResponseController
	query   domain.EventQuery
	reset   bool // its position was beyond the newest event
}

func (s *stream) send(text []byte) bool {
	_, err := s.to.Write(text)
	return err == nil && s.control.Flush() == nil
}

// run sends events until one of the contexts ends or the client is gone. It returns why events could not be read. A
// combined context would take half a KiB more per stream (TestEachHeldCallCostsLittle).
func (s *stream) run(ctx, stopping, ended context.Context) error {
	comment := time.NewTicker(streamComment)
	defer comment.Stop()
	for ctx.Err() == nil && stopping.Err() == nil && ended.Err() == nil {
		changed := s.service.Events.Changed()
		more, open, err := s.sendPage(ctx)
		switch {
		case err != nil || !open:
			return err
		case more:
			continue
		}
		select {
		case <-changed:
		case <-comment.C:
			if !s.send([]byte(":\n\n")) {
				return nil
			}
		case <-ctx.Done():
		case <-stopping.Done():
		case <-ended.Done():
		}
	}
	return nil
}

// sendPage sends the next events. open is false when the client is gone. While the database is away nothing is sent:
// the stream stays open until it is back.
func (s *stream) sendPage(ctx context.Context) (more, open bool, err error) {
	last := s.service.Events.LastID()
	page, err := s.service.Events.Page(ctx, s.query)
	if err != nil {
		if s.service.Events.Available() != nil {
			return false, true, nil
		}
		return false, true, err
	}
	if !sendEvents(page.Events, s.send) {
		return false, false, nil
	}
	if n := len(page.Events); n > 0 {
		s.query.After = page.Events[n-1].ID
	}
	if !page.More {
		s.query.After = max(s.query.After, last) // every selected event up to there was sent
	}
	return page.More, true, nil
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
