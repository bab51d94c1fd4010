package handlers

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"switchyard/internal/domain"
	"switchyard/internal/metrics"
	"switchyard/internal/service"
	"switchyard/views"
)

// Gateway is what the gateway's HTTP is made of.
type Gateway struct {
	Service *service.Service
	Log     *slog.Logger
	// AllowHosts are host names to answer to besides the built-in ones.
	AllowHosts []string
	// Metrics counts what is served; nil counts where nobody else adds to it.
	Metrics *metrics.Counts
	// Version is that of the program.
	Version  string
	TeamChat TeamChat
	// AdminToken is what callers must have, "" for none. SessionKey signs and encrypts the sessions of those who gave it.
	AdminToken domain.Secret
	SessionKey []byte
}

// gateway holds the handlers; each file adds those of its noun.
type gateway struct {
	Gateway
	errorWriter
	registryCache registryCache
}

// Handler returns the gateway's HTTP: first the request is counted and gets its id, then come the guards, the check of who asks, and the routes.
func (g Gateway) Handler() http.Handler {
	if g.Metrics == nil {
		g.Metrics = metrics.New()
	}
	h := &gateway{Gateway: g, errorWriter: errorWriter{g.Log}}
	a := newAccess(g)
	c := newConsole(g.Service, a, h.errorWriter)
	routes := h.routes(c)
	guarded := guard(g.AllowHosts, navigationOnly(a.check(routes, c.page(c.logInFirst))))
	return h.observe(routes, rescue(g.Log, limitBodyTime(guarded)))
}

// routes is the whole route table. GET routes answer HEAD as well, unless they name it themselves.
func (g *gateway) routes(c *console) chi.Router {
	r := chi.NewRouter()
	r.Use(middleware.GetHead)
	r.NotFound(c.page(c.notFound))
	r.MethodNotAllowed(methodNotAllowed(r))

	r.Get("/healthz", g.healthz)
	r.Get("/readyz", g.api(plainForm, g.readyz))
	r.Get("/metrics", g.metrics)
	r.Get("/api/openapi.json", describe)

	r.Get("/gateway/mode", g.api(plainForm, g.mode))
	r.Post("/gateway/tokens", g.api(plainForm, g.createToken))
	r.Get("/gateway/agents", g.api(plainForm, g.listAgents))
	r.Post("/gateway/agents", g.api(plainForm, g.joinAgent))
	r.Delete("/gateway/agents/{id}", g.api(plainForm, g.removeAgent))
	r.Post("/gateway/agents/{id}/heartbeat", g.api(plainForm, g.heartbeat))
	r.Post("/gateway/agents/{id}/assign", g.api(plainForm, g.assignAgent))

	r.Get("/api/gateway", g.api(plainForm, g.registry))
	r.Post("/api/gateway/switch", g.api(okForm, g.switchProject))
	r.Post("/api/gateway/projects", g.api(plainForm, g.addProject))
	r.Put("/api/gateway/projects/{name}", g.api(plainForm, g.updateProject))
	r.Delete("/api/gateway/projects/{name}", g.api(plainForm, g.removeProject))
	r.Get("/api/gateway/pipeline", g.api(plainForm, g.pipeline))
	r.Get("/api/gateway/attention", g.api(plainForm, g.attention))

	r.Get("/api/gateway/bot-config", g.api(plainForm, g.botConfig))
	r.Post("/api/gateway/bot-config", g.api(okForm, g.saveBotConfig))
	r.Get("/api/gateway/bot", g.api(plainForm, g.botStatus))
	r.Post("/api/gateway/bot/test", g.api(okForm, g.testBot))
	r.Post("/bot/team/events", g.teamEvents)
	r.Post("/bot/team/commands", g.teamCommands)

	r.Get("/api/gateway/events", g.api(plainForm, g.events))
	r.Get("/api/gateway/events/stream", g.api(plainForm, g.eventStream))

	// Going to these addresses changes something, so HEAD, which is meant to look only, is refused.
	getOnly := func(path string, h http.HandlerFunc) {
		r.Get(path, h)
		r.Head(path, methodNotAllowed(r))
	}
	getOnly("/oauth/authorize", c.page(c.authorize))
	getOnly("/oauth/callback", c.page(c.callback))
	getOnly("/callback", c.page(c.callback))
	getOnly("/oauth/status", g.api(plainForm, g.signInStatus))
	r.Post("/oauth/sign-out", g.api(plainForm, g.signOut))

	r.Get("/", c.page(c.overview))
	r.Get("/projects", c.page(c.projects))
	r.Post("/projects", c.page(c.addProject))
	r.Get("/projects/{name}", c.page(c.project))
	r.Post("/projects/{name}", c.page(c.updateProject))
	r.Post("/projects/{name}/remove", c.page(c.removeProject))
	r.Post("/restore-project", c.page(c.restoreProject))
	r.Post("/switch", c.page(c.switchProject))
	r.Get("/agents", c.page(c.agents))
	r.Post("/agents", c.page(c.addAgent))
	r.Post("/agents/{id}/assign", c.page(c.assignAgent))
	r.Post("/agents/{id}/label", c.page(c.labelAgent))
	r.Post("/agents/{id}/remove", c.page(c.removeAgent))
	r.Get("/agents/tokens/{hash}", c.page(c.joinToken))
	r.Post("/agents/tokens/{hash}/revoke", c.page(c.revokeToken))
	r.Get("/events", c.page(c.events))
	r.Get(views.BotConfigURL, c.page(c.bot))
	r.Post("/theme", c.page(c.setTheme))
	r.Get("/static/*", asset)

	r.Get(views.SignInByHandURL, c.page(c.signInByHand))
	r.Post(views.SignInByHandURL, c.page(c.pasteSignIn))
	r.Post(views.SignOutURL, c.page(c.signOutForm))
	r.Get(views.LoginURL, c.page(c.login))
	r.Post(views.LoginURL, c.page(c.logIn))
	r.Post(views.LogoutURL, c.page(c.logOut))

	return r
}

// pathParam returns a parameter of the path, decoded. chi matches the escaped path where that differs from the default
// escaping of the plain one ("a%2Fb"), and the plain one otherwise ("50%").
func pathParam(r *http.Request, name string) string {
	value := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return value
	}
	plain, err := url.PathUnescape(value)
	if err != nil { // net/http has parsed the whole path already
		return value
	}
	return plain
}

func notFound(w http.ResponseWriter, r *http.Request) {
	plainForm(w, http.StatusNotFound, "not found")
}

// methodNotAllowed answers 405 with the methods that the path does take.
func methodNotAllowed(routes chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		path := routePath(r)
		takes := func(method string) bool { return routes.Match(chi.NewRouteContext(), method, path) }
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if !takes(method) {
				continue
			}
			allowed = append(allowed, method)
			if method == http.MethodGet && !takes(http.MethodHead) { // a HEAD route is there to refuse it
				allowed = append(allowed, http.MethodHead)
			}
		}
		if len(allowed) == 0 {
			notFound(w, r)
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		plainForm(w, http.StatusMethodNotAllowed, "method not allowed")
	}
}
