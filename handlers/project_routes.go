package handlers

import (
	"log/slog"
	"net/http"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/feed"
)

// Project is what a project server's HTTP is made of.
type Project struct {
	Name  string
	Board interface{ View() *board.View }
	Feed  *feed.Ring
	// Token is what callers must have, "" for none.
	Token domain.Secret
	// AllowHosts are host names to answer to besides the built-in ones.
	AllowHosts []string
	Log        *slog.Logger
}

// project holds the handlers of a project server.
type project struct {
	Project
	errorWriter
	instance []string // as a header
	pipeline pipelineCache
}

// Handler returns the project server's HTTP: first come the guards, then the token, then the routes. It does without
// a router and without an id for each request: the feed is asked all the time, and there is nothing to tell apart.
func (p Project) Handler() http.Handler {
	h := &project{Project: p, errorWriter: errorWriter{p.Log}, instance: []string{p.Feed.Instance()}}
	return rescue(p.Log, limitBodyTime(guard(p.AllowHosts, h.authenticate(h.routes()))))
}

// projectHealth is open to whoever monitors the process; it tells nothing of the project.
const projectHealth = "/healthz"

// routes is the whole route table. Each route takes GET and HEAD.
func (p *project) routes() http.Handler {
	routes := map[string]http.HandlerFunc{
		projectHealth:   p.healthz,
		"/api/events":   p.api(plainForm, p.events),
		"/api/pipeline": p.api(plainForm, p.board),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route, ok := routes[r.URL.Path]
		switch {
		case !ok:
			notFound(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			plainForm(w, http.StatusMethodNotAllowed, "method not allowed")
		default:
			route(w, r)
		}
	})
}

func (p *project) authenticate(next http.Handler) http.Handler {
	if p.Token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := bearerToken(r)
		if r.URL.Path != projectHealth && !(ok && matchesToken(token, p.Token)) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			plainForm(w, http.StatusUnauthorized, "the project's token is needed")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// healthz answers while the process serves.
func (p *project) healthz(w http.ResponseWriter, _ *http.Request) {
	plainForm(w, http.StatusOK, "ok")
}
