package console

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"switchyard/internal/clock"
	"switchyard/internal/web"
	"switchyard/static"
	"switchyard/views"
)

// view is what a console handler shows.
type view struct {
	frame views.Frame // Title, Page and Scripts; the rest is filled in by render
	// page is around the part or the fragment, if there is one; nil if these are all of it.
	page templ.Component
	// part is the part of the page that refreshes itself. All readers of one role see the same part at the same address.
	part views.Part
	// fragment is what htmx gets instead of the page if the page has no part.
	fragment templ.Component
	status   int  // 0 is 200
	once     bool // shows a secret: the answer must not be cached
}

// wantsPart reports whether htmx asks for a part, rather than for a page by a boosted form or a history restore.
func wantsPart(r *http.Request) bool {
	h := r.Header
	return h.Get("Hx-Request") == "true" && h.Get("Hx-Boosted") == "" && h.Get("Hx-History-Restore-Request") == ""
}

// render writes the page, or its part if that was requested: 304 or 204 if the reader already has this version. A
// Cache-Control set by the handler is kept.
func (c *Console) render(w http.ResponseWriter, r *http.Request, v view) error {
	w.Header().Set("Vary", "HX-Request, Accept-Encoding, Cookie")
	if wantsPart(r) && v.fragment != nil {
		setDefault(w.Header(), "Cache-Control", "no-store")
		return c.writeFragment(w, r, v.fragment)
	}
	inner := v.fragment
	if v.part.Content != nil {
		part, err := c.renderPart(r.Context(), v.part)
		if err != nil {
			return err
		}
		if wantsPart(r) {
			c.writePart(w, r, part)
			return nil
		}
		inner = templ.Raw(part.html)
	}
	if v.page == nil {
		v.page = inner
	} else {
		v.page = views.Around(v.page, inner)
	}
	return c.renderPage(w, r, v)
}

// writePart writes the part, or answers 204 if the reader already has this version.
func (c *Console) writePart(w http.ResponseWriter, r *http.Request, p *part) {
	header := w.Header()
	setDefault(header, "Cache-Control", "no-store")
	open, worst := c.service.Overview.OpenAlerts()
	header.Set("Attention", strconv.Itoa(open)) // shown in the page's header, outside the part
	header.Set("Worst-Signal", string(worst))   // shown in the tab's icon
	header.Set("Asking", strconv.Itoa(c.service.Questions.Open()))
	if r.URL.Query().Get("v") == p.version {
		delete(header, "Content-Security-Policy") // it applies only to pages
		delete(header, "Referrer-Policy")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	header.Set("Active-Project", url.PathEscape(c.service.Projects.Registry().Active)) // shown in the page's header, too
	writeHTML(w, r, http.StatusOK, p.html)
}

func (c *Console) renderPage(w http.ResponseWriter, r *http.Request, v view) error {
	f := c.frame(w, r, v.frame)
	html, err := renderHTML(templ.WithChildren(r.Context(), v.page), views.Layout(f))
	if err != nil {
		return err
	}
	header := w.Header()
	if v.status >= http.StatusBadRequest {
		header.Set("HX-Replace-Url", "false") // the address of a refused form is not a page
	}
	if v.once || v.status != 0 || f.Notice.Text != "" {
		setDefault(header, "Cache-Control", "no-store")
	} else {
		setDefault(header, "Cache-Control", "private, no-cache")
		tag := `W/"` + hash(html) + `"`
		header.Set("ETag", tag)
		if strings.Contains(r.Header.Get("If-None-Match"), tag) {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	writeHTML(w, r, max(v.status, http.StatusOK), html)
	return nil
}

func (c *Console) writeFragment(w http.ResponseWriter, r *http.Request, fragment templ.Component) error {
	html, err := renderHTML(r.Context(), fragment)
	if err != nil {
		return err
	}
	writeHTML(w, r, http.StatusOK, html)
	return nil
}

func setDefault(header http.Header, key, value string) {
	if header.Get(key) == "" {
		header.Set(key, value)
	}
}

// now is the time as pages show it: to the minute, so that within a minute unchanged content renders to the same bytes.
// Scripts show the seconds.
func now() time.Time { return clock.Now().Truncate(time.Minute) }

// part is a rendered part. Its version is the hash of its bytes.
type part struct {
	version string
	html    string
}

// renderPart renders a part, and with it the active project, which the answer also names.
func (c *Console) renderPart(ctx context.Context, p views.Part) (*part, error) {
	content, err := renderHTML(ctx, p.Content)
	if err != nil {
		return nil, err
	}
	version := hash(c.service.Projects.Registry().Active, p.URL, p.Title, content)
	html, err := renderHTML(ctx, p.Element(version, templ.Raw(content)))
	return &part{version, html}, err
}

func renderHTML(ctx context.Context, component templ.Component) (string, error) {
	html, err := templ.ToGoHTML(ctx, component)
	return visible(string(html)), err
}

// hash returns the same for the same texts on every gateway.
func hash(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		_, _ = fmt.Fprintf(h, "%d %s", len(text), text) // so that "a", "bc" is not "ab", "c"
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:9])
}

// writeHTML answers in an encoding that the reader accepts.
func writeHTML(w http.ResponseWriter, r *http.Request, status int, html string) {
	header, body := w.Header(), []byte(html)
	header.Set("Content-Type", "text/html; charset=utf-8")
	if web.AcceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		body = web.Gzip(body)
	}
	web.WriteBytes(w, status, body)
}

// Asset serves an embedded file. Its address contains a hash, so the content never changes.
func Asset(w http.ResponseWriter, r *http.Request) error {
	file, ok := static.Lookup(r.URL.Path)
	if !ok {
		web.Plain(w, http.StatusNotFound, "not found")
		return nil
	}
	header := w.Header()
	setPageHeaders(header)
	header.Set("Content-Type", file.Type)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Vary", "Accept-Encoding")
	body := file.Content
	if web.AcceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		body = file.Compressed()
	}
	web.WriteBytes(w, http.StatusOK, body)
	return nil
}

// setPageHeaders sets the security headers of pages and what they load: scripts, styles and requests are restricted to
// this origin, nothing is inline, and no other page can frame the console. JSON and plain text do without: no browser
// takes them for pages, and the headers would be half of a small answer's bytes.
func setPageHeaders(header http.Header) {
	setDefault(header, "Referrer-Policy", "same-origin") // already set for addresses that must never be sent
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
}
