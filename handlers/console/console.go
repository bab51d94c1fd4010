// Package console serves the pages of the console, one file for each, with the same service calls as the API. It must
// know nothing of SQL or other servers.
package console

import (
	"cmp"
	"log/slog"
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
	"switchyard/views"
)

// Console holds the handlers. A page's handler calls the service, builds the props, and leaves the rest to render; a
// form's handler calls the same service method as the JSON API, then redirects with a notice, or shows the page again
// with what was typed.
type Console struct {
	// Version is the program's, which pages show.
	Version string

	web.Errors
	service  *service.Service
	sessions Sessions
	sample   Sample
	notices  notices
	told     countCache
}

// Sessions begins and ends the reader's session.
type Sessions interface {
	// LogIn begins a session for the holder of the admin token or a named one. It returns Unauthorized for a wrong token,
	// RateLimited, with Retry-After set, after too many from one address.
	LogIn(w http.ResponseWriter, r *http.Request, token domain.Secret) error
	LogOut(w http.ResponseWriter, r *http.Request) error

	// HasAdminToken reports whether there is an admin token.
	HasAdminToken() bool
	// Base returns the address of this gateway for people.
	Base(r *http.Request) string

	// LoginLink returns where people log in through the login's provider, and the provider's name, "" for none.
	LoginLink(r *http.Request) (address, provider string)
	// StartLogin returns the provider's address for a login that leads to next. It returns BadGateway.
	StartLogin(w http.ResponseWriter, r *http.Request, next string) (address string, err error)
	// FinishLogin returns where the login leads, even when it fails. It returns Invalid, BadGateway and Forbidden.
	FinishLogin(w http.ResponseWriter, r *http.Request) (next string, err error)
}

// New returns the console over s. noticeKey signs the cookies of notices.
func New(s *service.Service, sessions Sessions, sample Sample, noticeKey []byte, log *slog.Logger) *Console {
	return &Console{
		Errors: web.Errors{Log: log}, service: s, sessions: sessions, sample: sample,
		notices: newNotices(noticeKey),
	}
}

// Page adapts h, showing its errors as pages.
func (c *Console) Page(h web.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		setPageHeaders(w.Header())
		r = r.WithContext(domain.WithStageWords(r.Context(), c.service.Pipelines.StageWord))
		if err := h(w, r); err != nil {
			c.fail(w, r, err)
		}
	}
}

// fail shows an error as a page. If a part was requested, it stays unchanged; if its subject is gone, the page is
// reloaded.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, err error) {
	if web.IsClientGone(r, err) {
		c.Write(w, r, web.Plain, err)
		return
	}
	c.LogCause(r, err)
	status, message := web.StatusOf(err), domain.MessageOf(err)
	if wantsPart(r) {
		w.Header().Set("HX-Reswap", "none")
		if status == http.StatusNotFound {
			w.Header().Set("HX-Refresh", "true")
		}
		web.Plain(w, status, message)
		return
	}
	if status == http.StatusInternalServerError {
		message = "Something went wrong. The log has the details under request " + web.RequestID(r.Context()) + "."
	}
	c.showError(w, r, status, message)
}

// MethodNotAllowed says that an address accepts only forms, or none; Allow is set already.
func (c *Console) MethodNotAllowed(w http.ResponseWriter, r *http.Request) {
	setPageHeaders(w.Header())
	c.showError(w, r, http.StatusMethodNotAllowed, "This address only accepts forms of the console.")
}

func (c *Console) showError(w http.ResponseWriter, r *http.Request, status int, message string) {
	words := errorWords[status]
	title := cmp.Or(words.title, http.StatusText(status))
	p := views.ErrorProps{Status: status, Title: title, Message: message, Next: words.next}
	if name := web.PathParam(r, "name"); status == http.StatusNotFound && web.PathParam(r, "story_id") != "" {
		if _, found := c.service.Projects.Registry().Find(name); found {
			p.Project = name
		}
	}
	err := c.render(w, r, view{frame: views.Frame{Title: title}, page: views.ErrorPage(p), status: status})
	if err != nil {
		c.Write(w, r, web.Plain, err)
	}
}

// errorWords are the title of an error's page, "" for the status in words, and what the reader can do.
var errorWords = map[int]struct{ title, next string }{
	http.StatusBadRequest:            {"Bad request", "Check the address, or go back and correct what you entered."},
	http.StatusRequestEntityTooLarge: {"Too large", "Go back and shorten what you entered."},
	http.StatusNotFound: {
		"Not found", "It may have been renamed or removed. Check the address, or search for it by name.",
	},
	http.StatusForbidden:        {"Not allowed", "Ask an administrator, or log in with a token that has the role."},
	http.StatusMethodNotAllowed: {"Nothing to show here", "Go back to the page that you came from and use its buttons."},
	http.StatusInternalServerError: {
		"Internal error", "Try again. If it happens again, give the gateway’s administrator the number of the request.",
	},
	http.StatusBadGateway:         {next: soonOver},
	http.StatusServiceUnavailable: {next: soonOver},
	http.StatusGatewayTimeout:     {next: soonOver},
}

const soonOver = "This may be temporary: reload the page in a moment."

// frame fills in what every page shows around its content. It consumes the reader's notice, if there is one.
func (c *Console) frame(w http.ResponseWriter, r *http.Request, f views.Frame) views.Frame {
	if f.Notice.Text == "" {
		f.Notice = c.notices.pop(w, r)
	}
	f.Path = views.OverviewURL
	if r.Method == http.MethodGet && !web.InfoOf(r.Context()).SecretAddress {
		f.Path = r.URL.RequestURI()
	}
	f.Bare = f.Bare || web.InfoOf(r.Context()).Auth == web.AuthNone // the callback of the sign-in is public
	f.Session = web.InfoOf(r.Context()).Auth == web.AuthSession
	if !f.Bare {
		registry := c.service.Projects.Registry()
		f.Projects, f.Active = registry.Projects, registry.Active
		f.SignIn, f.SignInSetUp = c.service.SignIn.Status(), c.service.SignIn.Configured()
		f.OpenAlerts, f.Worst = c.service.Overview.OpenAlerts()
		f.Asking = c.service.Questions.Open()
	}
	f.Theme = theme(r)
	f.Version = c.Version
	if f.Now = now(); !f.Bare {
		f.AsOf = c.service.Events.AsOf()
	}
	return f
}
