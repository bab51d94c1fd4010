package handlers

import (
	"errors"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"switchyard/handlers/console"
	"switchyard/internal/domain"
	"switchyard/internal/web"
)

// routeTable adds routes to a router, each with its access check.
type routeTable struct {
	chi.Router
	access  *access
	console *console.Console
	open    map[string]bool // by pattern: no route there needs more than an agent's secret
	api     map[string]bool // the first segments of the API's paths
	looked  func()          // called when somebody requests a page; may be nil
	waiting web.HandlerFunc // answers until there is a service; nil once there is
}

// route is a row of the table.
type route struct {
	method, path   string
	around         chi.Middlewares // run before the access check
	getOnly        bool
	withoutService bool
	channel        domain.Channel
}

// An option changes how a route is served.
type option func(*route)

// getOnly refuses HEAD, which must not change anything, where GET does.
func getOnly(r *route) { r.getOnly = true }

// navigationOnly is for addresses that people open: other pages must not load them.
func navigationOnly(r *route) { r.around = append(r.around, web.NavigationOnly) }

// secretAddress is for addresses whose query holds a secret.
func secretAddress(r *route) { r.around = append(r.around, web.SecretAddress) }

// secretQuery is secretAddress for pages that are usually opened without a query, and are then like other pages.
func secretQuery(r *route) {
	r.around = append(r.around, func(next http.Handler) http.Handler {
		secret := web.SecretAddress(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "" {
				next.ServeHTTP(w, r)
				return
			}
			secret.ServeHTTP(w, r)
		})
	})
}

// withoutService is for routes that answer even before the gateway has a service.
func withoutService(r *route) { r.withoutService = true }

// over says by which channel the callers of a route come.
func over(channel domain.Channel) option { return func(r *route) { r.channel = channel } }

// plain adds a route of the API whose refusals are plain text.
func (t *routeTable) plain(who role, address string, h web.HandlerFunc, options ...option) {
	t.addAPI(who, address, web.Plain, h, options)
}

// okFalse adds a route of the API whose refusals are {"ok":false,"error":…}.
func (t *routeTable) okFalse(who role, address string, h web.HandlerFunc) {
	t.addAPI(who, address, web.OKFalse, h, nil)
}

func (t *routeTable) addAPI(who role, address string, form web.ErrorForm, h web.HandlerFunc, options []option) {
	_, path, _ := strings.Cut(address, " ")
	t.api[firstSegment(path)] = true
	adapt := func(h web.HandlerFunc) http.Handler { return t.access.Handler(form, h) }
	t.add(who, address, t.access.inForm(form), adapt, h, append([]option{over(domain.ChannelAPI)}, options...))
}

// page adds a page or a form of the console. Callers without a session are sent to the login.
func (t *routeTable) page(who role, address string, h web.HandlerFunc, options ...option) {
	adapt := func(h web.HandlerFunc) http.Handler { return t.look(who, t.console.Page(h)) }
	t.add(who, address, t.refusePage, adapt, h, append([]option{over(domain.ChannelConsole)}, options...))
}

func (t *routeTable) form(who role, address string, h console.FormHandler) {
	t.page(who, address, console.Form(h))
}

// refusePage redirects people to the login, or says that their role is too low. Programs, which send a token, get plain
// text.
func (t *routeTable) refusePage(w http.ResponseWriter, r *http.Request, err error) {
	_, hasToken := web.BearerToken(r)
	switch {
	case domain.CodeOf(err) == domain.Forbidden, errors.Is(err, errWallRevoked):
		t.console.Page(func(http.ResponseWriter, *http.Request) error { return err })(w, r)
	case hasToken:
		t.access.inForm(web.Plain)(w, r, err)
	default:
		t.console.Page(t.console.LogInFirst)(w, r)
	}
}

// add adds a route: adapt makes an HTTP handler of h, and refuse answers callers who may not use it. Without a service
// nobody is checked: the answer says only that there is none.
func (t *routeTable) add(who role, address string, refuse refusal, adapt func(web.HandlerFunc) http.Handler,
	h web.HandlerFunc, options []option,
) {
	var r route
	r.method, r.path, _ = strings.Cut(address, " ")
	for _, o := range options {
		o(&r)
	}
	check := func(next http.Handler) http.Handler {
		return t.access.check(who, r.channel, refuse, next)
	}
	if t.waiting != nil {
		check = func(next http.Handler) http.Handler { return next }
		if !r.withoutService {
			h = t.waiting
		}
	}
	t.With(r.around...).Method(r.method, r.path, check(adapt(h)))
	if r.getOnly {
		t.With(r.around...).Method(http.MethodHead, r.path, check(http.HandlerFunc(t.methodNotAllowed)))
	}
	open, known := t.open[r.path]
	t.open[r.path] = (open || !known) && !who.isOfPeople()
}

// look calls looked for requests by callers who may see projects.
func (t *routeTable) look(who role, next http.Handler) http.Handler {
	if t.looked == nil || !who.isOfPeople() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.looked()
		next.ServeHTTP(w, r)
	})
}

// addFallbacks adds the answers for addresses without a route. Callers without access do not learn which addresses
// exist. It must be called before the routes are added: afterwards the router would search all of them for subrouters.
func (t *routeTable) addFallbacks() {
	viewers := func(h http.HandlerFunc) http.Handler {
		return t.access.check(viewer, "", t.access.inForm(web.Plain), h)
	}
	if t.waiting != nil {
		viewers = func(http.HandlerFunc) http.Handler { return t.access.Handler(web.Plain, t.waiting) }
	}
	notFound, notAllowed := viewers(t.notFound), viewers(t.methodNotAllowed)
	t.NotFound(notFound.ServeHTTP)
	t.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		if t.isOpen(r) {
			t.methodNotAllowed(w, r)
			return
		}
		notAllowed.ServeHTTP(w, r)
	})
}

// notFound answers with a page, or, below the API's paths, in plain text.
func (t *routeTable) notFound(w http.ResponseWriter, r *http.Request) {
	if t.api[firstSegment(r.URL.Path)] {
		web.NotFound(w, r)
		return
	}
	t.console.Page(func(http.ResponseWriter, *http.Request) error {
		return domain.Errorf(domain.NotFound, "There is no page at this address.")
	})(w, r)
}

func (t *routeTable) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range methods {
		if t.pattern(method, r) == "" {
			continue
		}
		allowed = append(allowed, method)
		if method == http.MethodGet && t.pattern(http.MethodHead, r) == "" { // a HEAD route exists only to refuse HEAD
			allowed = append(allowed, http.MethodHead)
		}
	}
	if len(allowed) == 0 {
		t.notFound(w, r)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	if t.api[firstSegment(r.URL.Path)] || r.Method != http.MethodGet && r.Method != http.MethodHead {
		web.Plain(w, http.StatusMethodNotAllowed, "method not allowed")
		return
	}
	t.console.MethodNotAllowed(w, r)
}

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// isOpen reports whether anyone may know which methods the path allows.
func (t *routeTable) isOpen(r *http.Request) bool {
	for _, method := range methods {
		if pattern := t.pattern(method, r); pattern != "" && !t.open[pattern] {
			return false
		}
	}
	return true
}

// pattern returns the pattern of the route for the request's path and a method, "" for none.
func (t *routeTable) pattern(method string, r *http.Request) string {
	path := r.URL.Path
	if r.URL.RawPath != "" { // as the router matches it
		path = r.URL.RawPath
	}
	return t.Find(chi.NewRouteContext(), method, path)
}

func firstSegment(path string) string {
	segment, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return segment
}
