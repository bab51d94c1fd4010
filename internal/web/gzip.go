package web

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// level makes pages 14 % smaller than level 1 in twice the time; higher levels save another 2 % (BenchmarkGzip). A page
// or part is compressed once for all of its readers.
const level = 5

var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, level)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// Gzip compresses a body.
func Gzip(plain []byte) []byte {
	var compressed bytes.Buffer
	compressed.Grow(len(plain)/4 + 64)
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	w.Reset(&compressed)
	_, _ = w.Write(plain) // writing to a buffer cannot fail
	_ = w.Close()
	return compressed.Bytes()
}

// AcceptsGzip reports whether the client accepts gzip.
func AcceptsGzip(r *http.Request) bool {
	for _, offer := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		coding, quality, _ := strings.Cut(strings.TrimSpace(offer), ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(quality), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}
