package console

import (
	"bytes"
	"net/http"
	"sync"

	"switchyard/internal/web"
)

// writeHTML answers in an encoding that the reader accepts.
func writeHTML(w http.ResponseWriter, r *http.Request, status int, html []byte) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	if web.AcceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		html = web.Gzip(html)
	}
	web.WriteBytes(w, status, html)
}

// buffers are reused for rendering: growing a new one each time would cost as much as rendering.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooledBuffer is the size up to which a buffer is reused, in bytes.
const maxPooledBuffer = 1 << 20

func takeBuffer() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

func giveBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxPooledBuffer {
		b.Reset()
		buffers.Put(b)
	}
}
