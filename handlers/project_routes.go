package handlers

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"switchyard/internal/board"
	"switchyard/internal/feed"
	"switchyard/internal/yard"
)

// Project is what a project server's HTTP is made of.
type Project struct {
	Name  string
	Board interface{ View() *board.View }
	Feed  *feed.Ring
	// Token is what callers must have, "" for none.
	Token yard.Secret
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

// Handler returns the project server's HTTP: first the request gets its id, then come the guards, then the routes.
func (p Project) Handler() http.Handler {
	h := &project{Project: p, errorWriter: errorWriter{p.Log}, instance: []string{p.Feed.Instance()}}
	return identify(p.Log, guard(p.AllowHosts, h.authenticate(h.limit(h.routes()))))
}

// routes is the whole route table. GET routes answer HEAD as well.
func (p *project) routes() chi.Router {
	r := chi.NewRouter()
	r.Use(middleware.GetHead)
	r.NotFound(notFound)
	r.MethodNotAllowed(methodNotAllowed(r))

	r.Get(projectHealth, p.healthz)
	r.Get("/api/events", p.api(plainForm, p.events))
	r.Get("/api/pipeline", p.board)

	return r
}

// projectHealth is open to whom watches over the process; it tells nothing of the project.
const projectHealth = "/healthz"

func (p *project) authenticate(next http.Handler) http.Handler {
	if p.Token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := bearerToken(r)
		if routePath(r) != projectHealth && !(ok && matchesToken(token, p.Token)) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			plainForm(w, http.StatusUnauthorized, "the project's token is needed")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// answerLimit is how long an answer may take: the longest wait and half a minute for a slow reader.
const answerLimit = maxWait + 30*time.Second

// limit cuts off a reader that would hold an answer for longer than answerLimit.
func (p *project) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Its error means that there is no connection: then nobody can hold it.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerLimit))
		next.ServeHTTP(w, r)
	})
}

// healthz answers while the process serves.
func (p *project) healthz(w http.ResponseWriter, _ *http.Request) {
	plainForm(w, http.StatusOK, "ok")
}
