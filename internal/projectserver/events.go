package projectserver

import (
	"net/http"
	"strconv"
	"time"

	"switchyard/internal/feed"
	"switchyard/internal/web"
)

// events answers with the events that are newer than since; for the first of them it may wait. The feed is asked by
// everyone all the time, so an answer makes few allocations.
func (s *server) events(w http.ResponseWriter, r *http.Request) error {
	snapshot := s.Feed.Snapshot()
	since, wait, err := web.ParseFeedQuery(r)
	if err == nil && wait > 0 && !snapshot.Has(since) {
		snapshot = s.await(r, since, wait)
	}
	header := w.Header()
	header["Feed-Instance"] = s.instance
	if err != nil {
		header.Set("Feed-Sequence", snapshot.SequenceText)
		return err
	}
	head, tail := snapshot.After(since)
	numbers := []string{strconv.Itoa(len(head) + len(tail)), snapshot.SequenceText}
	header["Content-Length"], header["Feed-Sequence"] = numbers[:1:1], numbers[1:]
	header["Content-Type"], header["Cache-Control"] = web.JSONType, web.NoStore
	_, _ = w.Write(head) // the client may be gone
	if len(tail) > 0 {
		_, _ = w.Write(tail)
	}
	return nil
}

// await returns the first state of the feed that has something newer than since, or the one after wait, or when
// the request or its server ends.
func (s *server) await(r *http.Request, since uint64, wait time.Duration) *feed.Snapshot {
	ctx, cancel := web.LongPollContext(r)
	defer cancel()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		snapshot := s.Feed.Snapshot()
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
