package web

import (
	"io"
	"net/http"
	"sync/atomic"

	"switchyard/internal/domain"
)

const (
	// maxStrangerBodies is what the bodies of all requests by strangers may hold at a time, in bytes. The first SmallBody
	// of each may use all of it, the rest stops at largeStrangerBodies: whoever sends large bodies does not shut out a
	// login.
	maxStrangerBodies   = 16 << 20
	largeStrangerBodies = 12 << 20
)

// StrangerBodies bounds the bodies that strangers have under way. The zero value is ready for use.
type StrangerBodies struct{ held atomic.Int64 }

// Limit counts what is read of the request's body until release is called. Reading too much returns Unavailable.
func (s *StrangerBodies) Limit(r *http.Request) (release func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	body := &strangerBody{ReadCloser: r.Body, all: s}
	r.Body = body
	return func() { s.held.Add(-body.held) }
}

type strangerBody struct {
	io.ReadCloser
	all  *StrangerBodies
	held int64
}

func (b *strangerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.held += int64(n)
	limit := int64(maxStrangerBodies)
	if b.held > SmallBody {
		limit = largeStrangerBodies
	}
	if b.all.held.Add(int64(n)) > limit && n > 0 {
		return 0, domain.Errorf(domain.Unavailable, "too many requests are being sent at once; try again in a few seconds")
	}
	return n, err
}
