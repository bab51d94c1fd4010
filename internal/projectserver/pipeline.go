package projectserver

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/web"
)

// board answers with the stages and their stories, at most ?items= of them: 304 to clients that already have them, 503
// while the work directory cannot be read.
func (s *server) board(w http.ResponseWriter, r *http.Request) error {
	most := math.MaxInt
	if text := r.URL.Query().Get("items"); text != "" {
		var err error
		if most, err = strconv.Atoi(text); err != nil || most < 0 {
			return domain.Errorf(domain.Invalid, "items: must be a number from 0")
		}
	}
	view := s.Board.View()
	if view.Err != nil {
		return board.Unavailable(view.Err)
	}
	cache := &s.pipeline
	if countStories(view.Stages) > most {
		cache = &s.shortPipeline
	} else {
		most = math.MaxInt
	}
	body, tag := cache.encoded(s.Name, view, most), `"`+view.Version+`"`
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
	most int
	body []byte
}

// encoded returns the pipeline, which the caller must not change. A view of the board is encoded once, on first
// use.
func (c *pipelineCache) encoded(project string, view *board.View, most int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view != view || c.most != most {
		c.view, c.most = view, most
		c.body = web.EncodeJSON(encodePipeline(project, view.Stages, most))
	}
	return c.body
}
