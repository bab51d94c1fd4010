package handlers

import (
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
	open    map[string]bool // by pattern: no route there asks for more than an agent's secret
	api     map[string]bool // the first segments of the API's paths
	watched func()          // is called for who may see projects; may be nil
	waiting web.HandlerFunc // answers while there is no service yet; nil when there is one
}

func newRouteTable(a *access, c *console.Console, watched func(), waiting web.HandlerFunc) *routeTable {
	return &routeTable{
		Router: chi.NewRouter(), access: a, console: c, open: map[string]bool{}, api: map[string]bool{}, watched: watched, waiting: waiting,
	}
}

// route is a row of the table.
type route struct {
	method, path   string
	around         chi.Middlewares // come before the check of who asks
	getOnly        bool
	withoutService bool
}

// An option says what is special about a route.
type option func(*route)

// getOnly refuses HEAD, which must change nothing, where GET changes something.
func getOnly(r *route) { r.getOnly = true }

// navigationOnly is for addresses that only people may go to: no page may load them.
func navigationOnly(r *route) { r.around = append(r.around, web.NavigationOnly) }

// secretAddress is for addresses whose query holds a secret.
func secretAddress(r *route) { r.around = append(r.around, web.SecretAddress) }

// withoutService is for routes that answer while the gateway has no service yet.
func withoutService(r *route) { r.withoutService = true }

// plain adds a route of the API whose refusals are plain text.
func (t *routeTable) plain(who role, address string, h web.HandlerFunc, options ...option) {
	t.addAPI(who, address, web.Plain, h, options)
}

// okFalse adds a route of the API whose refusals are {"ok":false,"error":…}.
func (t *routeTable) okFalse(who role, address string, h web.HandlerFunc, options ...option) {
	t.addAPI(who, address, web.OKFalse, h, options)
}

func (t *routeTable) addAPI(who role, address string, form web.ErrorForm, h web.HandlerFunc, options []option) {
	_, path, _ := strings.Cut(address, " ")
	t.api[firstSegment(path)] = true
	adapt := func(h web.HandlerFunc) http.Handler { return t.access.Handler(form, h) }
	t.add(who, address, t.access.inForm(form), adapt, h, options)
}

// page adds a page or a form of the console. Callers without a session are sent to the login.
func (t *routeTable) page(who role, address string, h web.HandlerFunc, options ...option) {
	adapt := func(h web.HandlerFunc) http.Handler { return t.console.Page(h) }
	t.add(who, address, t.refusePage, adapt, h, options)
}

// refusePage sends people to the login, or tells them that their role is too low. Programs, which show a token, get plain text.
func (t *routeTable) refusePage(w http.ResponseWriter, r *http.Request, err error) {
	_, hasToken := web.BearerToken(r)
	switch {
	case domain.CodeOf(err) == domain.Forbidden:
		t.console.Page(func(http.ResponseWriter, *http.Request) error { return err })(w, r)
	case hasToken:
		t.access.inForm(web.Plain)(w, r, err)
	default:
		t.console.Page(t.console.LogInFirst)(w, r)
	}
}

// add adds a route: adapt makes an HTTP handler of h, and refuse answers those who may not use it. Without a service nobody is
// checked: all that anyone learns is that there is no service.
func (t *routeTable) add(who role, address string, refuse refusal, adapt func(web.HandlerFunc) http.Handler, h web.HandlerFunc, options []option) {
	var r route
	r.method, r.path, _ = strings.Cut(address, " ")
	for _, o := range options {
		o(&r)
	}
	check := func(next http.Handler) http.Handler { return t.access.check(who, refuse, t.watch(who, next)) }
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

// watch calls watched for the requests of those who may see projects.
func (t *routeTable) watch(who role, next http.Handler) http.Handler {
	if t.watched == nil || !who.isOfPeople() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.watched()
		next.ServeHTTP(w, r)
	})
}

// addFallbacks adds the answers for addresses without a route. Callers who may see nothing do not learn which addresses exist.
// It comes before the routes: afterwards the router would go through all of them for routers of their own.
func (t *routeTable) addFallbacks() {
	viewers := func(h http.HandlerFunc) http.Handler { return t.access.check(viewer, t.access.inForm(web.Plain), h) }
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

// headAsGet answers HEAD by the route for GET where there is none for HEAD.
func (t *routeTable) headAsGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead && t.pattern(http.MethodHead, r) == "" {
			chi.RouteContext(r.Context()).RouteMethod = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// notFound answers people with a page, and programs, where the API is, in plain text.
func (t *routeTable) notFound(w http.ResponseWriter, r *http.Request) {
	if t.api[firstSegment(r.URL.Path)] {
		web.NotFound(w, r)
		return
	}
	t.console.Page(func(http.ResponseWriter, *http.Request) error {
		return domain.Errorf(domain.NotFound, "There is no page at this address.")
	})(w, r)
}

// methodNotAllowed answers 405 with the methods that the path does take.
func (t *routeTable) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range methods {
		if t.pattern(method, r) == "" {
			continue
		}
		allowed = append(allowed, method)
		if method == http.MethodGet && t.pattern(http.MethodHead, r) == "" { // a HEAD route is there to refuse it
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

// isOpen reports whether everybody may know which methods the path takes.
func (t *routeTable) isOpen(r *http.Request) bool {
	for _, method := range methods {
		if pattern := t.pattern(method, r); pattern != "" && !t.open[pattern] {
			return false
		}
	}
	return true
}

// pattern returns that of the route that the path has with a method, "" for none.
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
