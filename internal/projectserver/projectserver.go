// Package projectserver is the HTTP of a project server: the feed, the pipeline and the stories of one board. It knows
// neither the gateway nor any files.
package projectserver

import (
	"log/slog"
	"net/http"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/gitlog"
	"switchyard/internal/web"
)

// Server is what a project server's HTTP is made of.
type Server struct {
	Name  string
	Board Board
	Feed  *feed.Ring
	// Commits are those that mention a story. It is nil where there are none to know of.
	Commits Commits
	// Token is what callers must have, "" for none.
	Token domain.Secret
	// AllowHosts are host names to answer to besides the built-in ones.
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

// Commits knows the commits that mention a story, the newest first; nil when it cannot know any.
type Commits interface {
	Commits(story string) []*gitlog.Commit
}

// server holds the handlers.
type server struct {
	Server
	web.Errors
	instance                []string // as a header
	pipeline, shortPipeline pipelineCache
}

// Handler returns the project server's HTTP: first come the guards, then the token, then the route. It does without
// a router and without an id for each request: the feed is read all the time, and one request is like another.
func (s Server) Handler() http.Handler {
	h := &server{Server: s, Errors: web.Errors{Log: s.Log}, instance: []string{s.Feed.Instance()}}
	return web.LimitWriteTime(web.Recover(s.Log)(web.LimitBodyTime(web.Guard(s.AllowHosts)(h.routes()))))
}

// route is what answers at a path, by method. GET answers HEAD as well.
type route struct {
	open              bool // needs no token: it tells nothing of the project
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
			web.Plain(w, http.StatusUnauthorized, "the project's token is needed")
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

// authenticate reports whether the caller may use every route.
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

// healthz answers while the process serves.
func (s *server) healthz(w http.ResponseWriter, _ *http.Request) {
	web.Plain(w, http.StatusOK, "ok")
}
