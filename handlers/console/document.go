package console

import (
	"bytes"
	"net/http"
	"sync"

	"switchyard/internal/web"
)

// document is HTML for any number of readers. It is compressed once, for the first reader that accepts it.
type document struct {
	plain      []byte
	once       sync.Once
	compressed []byte
}

// write answers in an encoding that the reader accepts.
func (d *document) write(w http.ResponseWriter, r *http.Request, status int) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	if !web.AcceptsGzip(r) {
		web.WriteBytes(w, status, d.plain)
		return
	}
	header.Set("Content-Encoding", "gzip")
	d.once.Do(func() { d.compressed = web.Gzip(d.plain) })
	web.WriteBytes(w, status, d.compressed)
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
