package handlers

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/a-h/templ"
	"github.com/klauspost/compress/gzip"

	"switchyard/views"
)

// view is what a console handler shows. Components are rendered only when the reader does not have them already.
type view struct {
	frame views.Frame // Title, Page and Scripts; the rest is filled in by render
	page  templ.Component
	// part is the component within page that refreshes itself, nil for none. Everyone who asks for the same address sees
	// the same part.
	part templ.Component
	// version changes with anything that page and part show, other than time passing, and with the active project. "" is
	// a page that always is new.
	version string
	status  int // 0 is 200
}

// wantsPart reports whether a request is a part's own: by htmx, neither a boosted form nor the history coming back.
func wantsPart(r *http.Request) bool {
	return r.Header.Get("Hx-Request") == "true" && r.Header.Get("Hx-Boosted") == "" && r.Header.Get("Hx-History-Restore-Request") == ""
}

// render writes the page, or its part if that was asked for: 304 or 204 without rendering when the reader has it.
// A handler that has set Cache-Control before keeps it.
func (c *console) render(w http.ResponseWriter, r *http.Request, v view) error {
	if v.version != "" && v.part != nil && unchanged(w, r, v.version) {
		return nil
	}
	w.Header()["Vary"] = varyOn
	if v.part != nil && wantsPart(r) {
		return c.renderPart(w, r, v)
	}
	return c.renderPage(w, r, v)
}

// unchanged answers a part that is still as its reader has it, and reports whether it did. A handler that knows the version
// early asks before it looks up what it will not need.
func unchanged(w http.ResponseWriter, r *http.Request, version string) bool {
	if !wantsPart(r) || r.URL.RawQuery != "v="+version && r.URL.Query().Get("v") != version { // most have no filters
		return false
	}
	header := w.Header()
	header["Vary"], header["Cache-Control"] = varyOn, noStore
	delete(header, "Content-Security-Policy") // there is no page to hold to it
	delete(header, "Referrer-Policy")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// varyOn is what an answer of the console depends on besides its address.
var varyOn = []string{"HX-Request, Accept-Encoding, Cookie"}

func (c *console) renderPart(w http.ResponseWriter, r *http.Request, v view) error {
	setDefault(w.Header(), "Cache-Control", "no-store")
	w.Header().Set("Active-Project", url.PathEscape(c.service.Projects.Registry().Active)) // the header around the part follows
	query := r.URL.Query()
	query.Del("v")
	body, err := c.parts.get(r.URL.Path+"?"+query.Encode(), v.version, func() (encoded, error) {
		return encode(context.WithoutCancel(r.Context()), v.part)
	})
	if err != nil {
		return err
	}
	body.write(w, r, http.StatusOK)
	return nil
}

func (c *console) renderPage(w http.ResponseWriter, r *http.Request, v view) error {
	f := c.frame(w, r, v.frame)
	header := w.Header()
	if v.status >= http.StatusBadRequest {
		header.Set("HX-Replace-Url", "false") // a refused form's address is no page
	}
	if v.version == "" || v.status != 0 || f.Notice.Text != "" {
		setDefault(header, "Cache-Control", "no-store")
	} else {
		setDefault(header, "Cache-Control", "private, no-cache")
		tag := `W/"` + frameVersion(f, v.version) + `"`
		header.Set("ETag", tag)
		if strings.Contains(r.Header.Get("If-None-Match"), tag) {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	body, err := encode(templ.WithChildren(r.Context(), v.page), views.Layout(f))
	if err != nil {
		return err
	}
	body.write(w, r, max(v.status, http.StatusOK))
	return nil
}

// frameVersion is the version of a whole page. Relative times in it are true to the minute.
func frameVersion(f views.Frame, content string) string {
	var v version
	v.text(content, f.Title, f.Path, f.Active, string(f.Theme))
	for _, p := range f.Projects {
		v.text(p.Name)
	}
	v.flag(f.SignIn.Authenticated, f.SignIn.Expired)
	v.number(int64(f.SignIn.ExpiresAt), f.Now.Unix()/60)
	return v.String()
}

// encoded is a rendered component, compressed: hardly any reader wants it otherwise.
type encoded []byte

// compressors are gzip writers of level 1: on pages of this size the next levels save a twentieth and cost twice the time.
var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// buffers are where components are rendered and compressed: growing one for each would cost as much as rendering.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooledBuffer is the size up to which a buffer is used again.
const maxPooledBuffer = 1 << 20

func encode(ctx context.Context, component templ.Component) (encoded, error) {
	plain, compressed := takeBuffer(), takeBuffer()
	defer giveBuffer(plain)
	defer giveBuffer(compressed)
	if err := component.Render(ctx, plain); err != nil {
		return nil, err
	}
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	w.Reset(compressed)
	_, _ = w.Write(plain.Bytes()) // a buffer takes everything
	_ = w.Close()
	return bytes.Clone(compressed.Bytes()), nil
}

func takeBuffer() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

func giveBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxPooledBuffer {
		b.Reset()
		buffers.Put(b)
	}
}

// write answers with the form that the reader takes.
func (e encoded) write(w http.ResponseWriter, r *http.Request, status int) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	body := []byte(e)
	if acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
	} else {
		body = e.plain()
	}
	writeBytes(w, status, body)
}

func (e encoded) plain() []byte {
	reader, err := gzip.NewReader(bytes.NewReader(e))
	if err != nil {
		panic(err) // it was written here
	}
	body, err := io.ReadAll(reader)
	if err != nil {
		panic(err)
	}
	return body
}

func writeBytes(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

func acceptsGzip(r *http.Request) bool {
	for _, offer := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		coding, quality, _ := strings.Cut(strings.TrimSpace(offer), ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(quality), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}

func setDefault(header http.Header, key, value string) {
	if header.Get(key) == "" {
		header.Set(key, value)
	}
}

// sharedParts keeps each part's last rendering, so that all its viewers cost one.
type sharedParts struct {
	mu    sync.Mutex
	parts map[string]*sharedPart
}

type sharedPart struct {
	version string
	once    sync.Once
	body    encoded
	err     error
}

// maxSharedParts bounds what filters that nobody uses any more keep in memory.
const maxSharedParts = 64

// get returns the part with this address and version, rendering it if nobody has yet.
func (s *sharedParts) get(address, version string, render func() (encoded, error)) (encoded, error) {
	if version == "" {
		return render()
	}
	s.mu.Lock()
	part := s.parts[address]
	if part == nil || part.version != version {
		if s.parts == nil || len(s.parts) >= maxSharedParts {
			s.parts = map[string]*sharedPart{}
		}
		part = &sharedPart{version: version}
		s.parts[address] = part
	}
	s.mu.Unlock()
	part.once.Do(func() { part.body, part.err = render() })
	return part.body, part.err
}
