package handlers

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"switchyard/internal/board"
	"switchyard/internal/domain"
)

// board answers with the stages and their stories: 304 to those who have them already.
func (p *project) board(w http.ResponseWriter, r *http.Request) {
	body, tag := p.encodedBoard()
	header := w.Header()
	header.Set("ETag", tag)
	header.Set("Cache-Control", "no-cache")
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header["Content-Type"] = jsonMedia
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client may be gone
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
func (p *project) encodedBoard() (body []byte, tag string) {
	c := &p.pipeline
	c.mu.Lock()
	defer c.mu.Unlock()
	if view := p.Board.View(); c.view != view {
		c.view = view
		c.body = encodeJSON(domain.Pipeline{Project: p.Name, Stages: view.Stages})
		c.version++
	}
	return c.body, `"` + p.Feed.Instance() + "-" + strconv.Itoa(c.version) + `"`
}
