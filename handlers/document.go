package handlers

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// document is HTML that is written to any number of readers, and compressed for the first of them who takes it so.
type document struct {
	plain      []byte
	once       sync.Once
	compressed []byte
}

// compressors are gzip writers of level 1: on pages of this size the next levels save a twentieth and cost twice the time.
var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// write answers in the form that the reader takes.
func (d *document) write(w http.ResponseWriter, r *http.Request, status int) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	body := d.plain
	if acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		d.once.Do(func() { d.compressed = compress(d.plain) })
		body = d.compressed
	}
	writeBytes(w, status, body)
}

func compress(plain []byte) []byte {
	buffer := takeBuffer()
	defer giveBuffer(buffer)
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	w.Reset(buffer)
	_, _ = w.Write(plain) // a buffer takes everything
	_ = w.Close()
	return bytes.Clone(buffer.Bytes())
}

// buffers are where components are rendered and compressed: growing one for each would cost as much as rendering.
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
