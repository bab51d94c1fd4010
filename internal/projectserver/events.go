package projectserver

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"switchyard/internal/feed"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// events answers with the events that are newer than since; it may wait for the first of them.
func (s *server) events(w http.ResponseWriter, r *http.Request) error {
	snapshot := s.Feed.Snapshot()
	q, err := web.ParseFeedQuery(r)
	if err == nil && q.Wait > 0 && !snapshot.Has(q.Since) {
		snapshot = s.await(r, q)
	}
	header := w.Header()
	header.Set("Feed-Instance", s.Feed.Instance())
	header.Set("Feed-Sequence", snapshot.SequenceText)
	header.Set("Pipeline-Version", s.version(s.Board.View()))
	if err != nil {
		return err
	}
	head, tail := snapshot.After(q.Since)
	header.Set("Content-Length", strconv.Itoa(len(head)+len(tail)))
	header["Content-Type"], header["Cache-Control"] = web.JSONType, web.NoStore
	_, _ = w.Write(head) // the client may be gone
	_, _ = w.Write(tail)
	return nil
}

// branchPoll is how often the work tree's branch is checked while a call is held.
const branchPoll = 2 * time.Second

// await returns the first state of the feed that has something newer than q.Since, or the one after q.Wait, or when the
// request or its server ends, or as soon as the pipeline is no longer q.Pipeline.
func (s *server) await(r *http.Request, q web.FeedQuery) *feed.Snapshot {
	ctx, cancel := web.LongPollContext(r)
	defer cancel()
	timeout := time.NewTimer(q.Wait)
	defer timeout.Stop()
	var branch <-chan time.Time
	if q.Pipeline != "" {
		ticker := time.NewTicker(branchPoll)
		defer ticker.Stop()
		branch = ticker.C
	}
	for {
		var replaced <-chan struct{}
		if q.Pipeline != "" {
			view := s.Board.View()
			if s.version(view) != q.Pipeline {
				return s.Feed.Snapshot()
			}
			replaced = view.Replaced() // after the events that led to it were recorded
		}
		snapshot := s.Feed.Snapshot()
		if snapshot.Has(q.Since) {
			return snapshot
		}
		select {
		case <-replaced:
		case <-branch: // it may have changed
		case <-snapshot.Replaced():
		case <-timeout.C:
			return snapshot
		case <-ctx.Done():
			return snapshot
		}
	}
}

// history answers with the moves after a position, which counts them.
func (s *server) history(w http.ResponseWriter, r *http.Request) error {
	q := web.ParseQuery(r)
	after, limit := q.Number("after", 0, 0, math.MaxInt64), q.Number("limit", 200, 1, 1000)
	if err := q.Err(); err != nil {
		return err
	}
	known := s.Commits.Moves()
	rest := known.List[min(after, int64(len(known.List))):]
	rest = rest[:min(limit, int64(len(rest)))]
	web.WriteJSON(w, http.StatusOK, wire.History{
		ID: known.ID, Complete: known.Complete, Next: after + int64(len(rest)), Moves: append([]wire.Move{}, rest...),
	})
	return nil
}
