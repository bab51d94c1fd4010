// Package projectserver is the HTTP of a project server: the feed and the pipeline of one board. It knows neither the
// gateway nor any files.
package projectserver

import (
	"log/slog"
	"net/http"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/web"
)

// Server is what a project server's HTTP is made of.
type Server struct {
	Name  string
	Board interface{ View() *board.View }
	Feed  *feed.Ring
	// Token is what callers must have, "" for none.
	Token domain.Secret
	// AllowHosts are host names to answer to besides the built-in ones.
	AllowHosts []string
	Log        *slog.Logger
}

// server holds the handlers.
type server struct {
	Server
	web.Errors
	instance []string // as a header
	pipeline pipelineCache
}

// Handler returns the project server's HTTP: first come the guards, then the token, then the routes. It does without
// a router and without an id for each request: the feed is asked all the time, and there is nothing to tell apart.
func (s Server) Handler() http.Handler {
	h := &server{Server: s, Errors: web.Errors{Log: s.Log}, instance: []string{s.Feed.Instance()}}
	return web.Recover(s.Log)(web.LimitBodyTime(web.Guard(s.AllowHosts)(h.authenticate(h.routes()))))
}

// healthPath is open to whoever monitors the process; it tells nothing of the project.
const healthPath = "/healthz"

// routes is the whole route table. Each route takes GET and HEAD.
func (s *server) routes() http.Handler {
	routes := map[string]http.HandlerFunc{
		healthPath:      s.healthz,
		"/api/events":   s.Errors.Handler(web.Plain, s.events),
		"/api/pipeline": s.Errors.Handler(web.Plain, s.board),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route, ok := routes[r.URL.Path]
		switch {
		case !ok:
			web.NotFound(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			web.Plain(w, http.StatusMethodNotAllowed, "method not allowed")
		default:
			route(w, r)
		}
	})
}

func (s *server) authenticate(next http.Handler) http.Handler {
	if s.Token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := web.BearerToken(r)
		if r.URL.Path != healthPath && !(ok && web.MatchesToken(token, s.Token)) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			web.Plain(w, http.StatusUnauthorized, "the project's token is needed")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// healthz answers while the process serves.
func (s *server) healthz(w http.ResponseWriter, _ *http.Request) {
	web.Plain(w, http.StatusOK, "ok")
}
