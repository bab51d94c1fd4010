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
