package console

import (
	"bytes"
	"net/http"
	"sync"

	"switchyard/internal/web"
)

// document is HTML that is written to any number of readers, and compressed for the first of them who takes it so.
type document struct {
	plain      []byte
	once       sync.Once
	compressed []byte
}

// write answers in the form that the reader takes.
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

// buffers are where components are rendered: growing one for each would cost as much as rendering.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooledBuffer is the size up to which a buffer is used again.
const maxPooledBuffer = 1 << 20

func takeBuffer() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

func giveBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxPooledBuffer {
		b.Reset()
		buffers.Put(b)
	}
}
