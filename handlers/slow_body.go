package handlers

import (
	"io"
	"net/http"
	"time"
)

// bodyTime is how long a request's body may take, as its headers may.
const bodyTime = 10 * time.Second

// maxRest is how much of a body is read on after its request was answered, in bytes.
const maxRest = 64 << 20

// limitBodyTime cuts off bodies that take too long. A server-wide ReadTimeout would do that as well, but would also end
// requests that wait for news after their body came. A request that is refused before its body was read is answered at
// once, and the rest of the body read on: clients that send everything before they look for an answer would find a broken
// connection instead.
func limitBodyTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		connection := http.NewResponseController(w)
		if connection.SetReadDeadline(time.Now().Add(bodyTime)) != nil {
			next.ServeHTTP(w, r)
			return
		}
		_ = connection.EnableFullDuplex()
		body := &timedBody{ReadCloser: r.Body, connection: connection}
		r.Body = body
		next.ServeHTTP(w, r)
		if !body.ended {
			_ = connection.Flush()
			_, _ = io.CopyN(io.Discard, body, maxRest)
		}
		if !body.ended { // what is still to come must not be taken for the next request
			panic(http.ErrAbortHandler)
		}
	})
}

// timedBody lifts the limit when the body is whole.
type timedBody struct {
	io.ReadCloser
	connection *http.ResponseController
	ended      bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ended = true
		_ = b.connection.SetReadDeadline(time.Time{})
	}
	return n, err
}
