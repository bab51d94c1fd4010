package handlers

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"switchyard/internal/board"
	"switchyard/internal/domain"
)

// board answers with the stages and their stories: 304 to those who have them already, 503 while the work directory
// cannot be read.
func (p *project) board(w http.ResponseWriter, r *http.Request) error {
	view := p.Board.View()
	if view.Err != nil {
		return domain.WrapError(domain.Unavailable, view.Err, "the work directory cannot be read: "+reasonOf(view.Err))
	}
	body, tag := p.encodedBoard(view)
	header := w.Header()
	header.Set("ETag", tag)
	header.Set("Cache-Control", "no-cache")
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	header["Content-Type"] = jsonMedia
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client may be gone
	return nil
}

// pipelineCache holds the encoded pipeline.
type pipelineCache struct {
	mu      sync.Mutex
	view    *board.View
	body    []byte
	version int
}

// encodedBoard returns the pipeline, which the caller must not change, and its ETag. A view of the board is encoded
// once, when it is asked for first.
func (p *project) encodedBoard(view *board.View) (body []byte, tag string) {
	c := &p.pipeline
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view != view {
		c.view = view
		c.body = encodeJSON(newPipelineJSON(p.Name, view.Stages))
		c.version++
	}
	return c.body, `"` + p.Feed.Instance() + "-" + strconv.Itoa(c.version) + `"`
}
