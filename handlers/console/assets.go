package console

import (
	"net/http"

	"switchyard/internal/web"
	"switchyard/static"
)

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

// setPageHeaders sets the security headers of pages and of what pages load. JSON and plain text do without: no browser
// takes them for pages, and the headers would be half of a small answer's bytes.
func setPageHeaders(header http.Header) {
	if header["Referrer-Policy"] == nil { // already set for addresses that must never be sent
		header["Referrer-Policy"] = sameOrigin
	}
	header["Content-Security-Policy"] = contentPolicy
}

var (
	sameOrigin    = []string{"same-origin"}
	contentPolicy = []string{contentSecurityPolicy}
)

// contentSecurityPolicy applies to every page: scripts, styles and requests are restricted to this origin, nothing is
// inline, and no other page can frame the console.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src " +
	"'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
