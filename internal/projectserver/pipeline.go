package projectserver

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"switchyard/internal/board"
	"switchyard/internal/web"
)

// board answers with the stages and their stories: 304 to those who have them already, 503 while the work directory
// cannot be read.
func (s *server) board(w http.ResponseWriter, r *http.Request) error {
	view := s.Board.View()
	if view.Err != nil {
		return board.Unavailable(view.Err)
	}
	body, tag := s.encodedBoard(view)
	header := w.Header()
	header.Set("ETag", tag)
	header.Set("Cache-Control", "no-cache")
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	header["Content-Type"] = web.JSONType
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client may be gone
	return nil
}

// pipelineCache holds the encoded pipeline.
type pipelineCache struct {
	mu   sync.Mutex
	view *board.View
	body []byte
}

// encodedBoard returns the pipeline, which the caller must not change, and its ETag. A view of the board is encoded
// once, when it is asked for first.
func (s *server) encodedBoard(view *board.View) (body []byte, tag string) {
	c := &s.pipeline
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view != view {
		c.view = view
		c.body = web.EncodeJSON(encodePipeline(s.Name, view.Stages))
	}
	return c.body, `"` + view.Version + `"`
}
