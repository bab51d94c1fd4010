// Package projectserver serves the HTTP API of a project server: the feed, the pipeline and the stories of one board.
// It must know neither the gateway nor files.
package projectserver

import (
	"log/slog"
	"net/http"
	"sync/atomic"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/gitlog"
	"switchyard/internal/web"
)

// Server holds what a project server's HTTP handler is built from.
type Server struct {
	Name  string
	Board Board
	Feed  *feed.Ring
	// Commits finds the commits that mention a story; nil if there is no repository.
	Commits Commits
	// Token is required of callers, "" for none.
	Token domain.Secret
	// AllowHosts are host names to accept besides the built-in ones.
	AllowHosts []string
	Log        *slog.Logger
}

// Board is the board that is served.
type Board interface {
	View() *board.View
	Read(id string) (*board.Details, error)
	Writable() bool
	Change(id string, c board.Change) (*board.Details, error)
	Create(name, body, stage string) (*board.Details, error)
}

// Commits finds the commits that mention a story, newest first; nil when it cannot know any.
type Commits interface {
	Commits(story string) []*gitlog.Commit
}

// server holds the handlers.
type server struct {
	Server
	web.Errors
	instance                []string // as a header's values
	lastQuery               atomic.Pointer[parsedQuery]
	pipeline, shortPipeline pipelineCache
}

// Handler returns the project server's handler: first the guards, then the token check, then the route. It does without
// a router and request ids, because feeds are read all the time.
func (s Server) Handler() http.Handler {
	h := &server{Server: s, Errors: web.Errors{Log: s.Log}, instance: []string{s.Feed.Instance()}}
	return web.LimitWriteTime(web.Recover(s.Log)(web.LimitBodyTime(web.Guard(s.AllowHosts)(h.routes()))))
}

// route holds the handlers of a path, by method. GET answers HEAD as well.
type route struct {
	open              bool // needs no token: it reveals nothing about the project
	allow             string
	get, post, change http.HandlerFunc
}

// routes is the whole route table.
func (s *server) routes() http.Handler {
	handler := func(h web.HandlerFunc) http.HandlerFunc { return s.Errors.Handler(web.Plain, h) }
	routes := map[string]route{
		"/healthz":      {open: true, allow: "GET, HEAD", get: s.healthz},
		"/api/events":   {allow: "GET, HEAD", get: handler(s.events)},
		"/api/pipeline": {allow: "GET, HEAD", get: handler(s.board)},
		"/api/stories":  {allow: "POST", post: handler(s.createStory)},
	}
	story := route{allow: "GET, HEAD, PATCH", get: handler(s.story), change: handler(s.changeStory)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route, ok := routes[r.URL.Path]
		if !ok && storyID(r) != "" {
			route, ok = story, true
		}
		if !s.authenticate(r) && !route.open {
			w.Header().Set("WWW-Authenticate", "Bearer")
			web.Plain(w, http.StatusUnauthorized, "the project's token is required")
			return
		}
		if !ok {
			web.NotFound(w, r)
			return
		}
		if h := route.handler(r.Method); h != nil {
			h(w, r)
			return
		}
		w.Header().Set("Allow", route.allow)
		web.Plain(w, http.StatusMethodNotAllowed, "method not allowed")
	})
}

func (r route) handler(method string) http.HandlerFunc {
	switch method {
	case http.MethodGet, http.MethodHead:
		return r.get
	case http.MethodPost:
		return r.post
	case http.MethodPatch:
		return r.change
	}
	return nil
}

// authenticate reports whether the caller has the token, if one is required.
func (s *server) authenticate(r *http.Request) bool {
	if s.Token == "" {
		return true
	}
	token, ok := web.BearerToken(r)
	if !ok || !web.MatchesToken(token, s.Token) {
		return false
	}
	web.KnownCaller(r.Context())
	return true
}

// healthz reports that the process serves requests.
func (s *server) healthz(w http.ResponseWriter, _ *http.Request) {
	web.Plain(w, http.StatusOK, "ok")
}
