package handlers

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
	"switchyard/static"
	"switchyard/views"
)

// console is the pages for people. A page's handler asks the service, makes props, and leaves the rest to render; a form's
// handler calls the same service method as the JSON API, then redirects with a notice, or shows the page again with what
// was typed.
type console struct {
	errorWriter
	service  *service.Service
	access   *access
	notices  notices
	parts    parts
	removals removals
}

func newConsole(s *service.Service, a *access, errors errorWriter) *console {
	return &console{errorWriter: errors, service: s, access: a, notices: newNotices()}
}

// page adapts h, writing its errors as pages.
func (c *console) page(h handlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		setPageHeaders(w.Header())
		if err := h(w, r); err != nil {
			c.fail(w, r, err)
		}
	}
}

// fail shows an error as a page. A part that asked stays as it is; where its subject is gone, its page is loaded anew.
func (c *console) fail(w http.ResponseWriter, r *http.Request, err error) {
	if ended(r, err) {
		c.write(w, r, plainForm, err)
		return
	}
	c.logCause(r, err)
	status, message := statusOf(err), domain.MessageOf(err)
	if wantsPart(r) {
		w.Header().Set("HX-Reswap", "none")
		if status == http.StatusNotFound {
			w.Header().Set("HX-Refresh", "true")
		}
		plainForm(w, status, message)
		return
	}
	if status == http.StatusInternalServerError {
		message = "Something went wrong. The log has the details under request " + requestID(r.Context()) + "."
	}
	title := errorTitle(status)
	err = c.render(w, r, view{frame: views.Frame{Title: title}, page: views.ErrorPage(title, message), status: status})
	if err != nil {
		c.write(w, r, plainForm, err)
	}
}

func errorTitle(status int) string {
	switch status {
	case http.StatusNotFound:
		return "Not found"
	case http.StatusInternalServerError:
		return "Internal error"
	}
	return http.StatusText(status)
}

// frame fills in what every page shows around its content. It takes the notice that waits for this reader.
func (c *console) frame(w http.ResponseWriter, r *http.Request, f views.Frame) views.Frame {
	if f.Notice.Text == "" {
		f.Notice = c.notices.take(w, r)
	}
	f.Path = views.OverviewURL
	if r.Method == http.MethodGet && !isCallback(r.URL.Path) { // the address of a callback holds a code
		f.Path = r.URL.RequestURI()
	}
	f.Bare = f.Bare || web.InfoOf(r.Context()).Auth == web.AuthNone // the sign-in's callback is open to everyone
	f.Session = web.InfoOf(r.Context()).Auth == web.AuthSession
	if !f.Bare {
		registry := c.service.Projects.Registry()
		f.Projects, f.Active = registry.Projects, registry.Active
		f.SignIn = c.service.SignIn.Status()
	}
	f.Theme = theme(r)
	f.Now = now()
	return f
}

// asset serves the embedded files. An address never changes its content.
func asset(w http.ResponseWriter, r *http.Request) error {
	file, ok := static.Lookup(r.URL.Path)
	if !ok {
		plainForm(w, http.StatusNotFound, "not found")
		return nil
	}
	header := w.Header()
	setPageHeaders(header)
	header.Set("Content-Type", file.Type)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Vary", "Accept-Encoding")
	body := file.Content
	if acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		body = file.Compressed()
	}
	writeBytes(w, http.StatusOK, body)
	return nil
}
