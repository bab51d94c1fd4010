package projectserver

import (
	"math"
	"net/http"

	"switchyard/internal/gitlog"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// history answers with the moves after a position, which counts them.
func (s *server) history(w http.ResponseWriter, r *http.Request) error {
	q := web.ParseQuery(r)
	after, limit := q.Number("after", 0, 0, math.MaxInt64), q.Number("limit", 200, 1, 1000)
	if err := q.Err(); err != nil {
		return err
	}
	known := &gitlog.Moves{ID: "none", Complete: true}
	if s.Commits != nil {
		known = s.Commits.Moves()
	}
	rest := known.List[min(after, int64(len(known.List))):]
	rest = rest[:min(limit, int64(len(rest)))]
	web.WriteJSON(w, http.StatusOK, wire.History{
		ID: known.ID, Complete: known.Complete, Next: after + int64(len(rest)), Moves: append([]wire.Move{}, rest...),
	})
	return nil
}
