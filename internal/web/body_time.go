package web

import (
	"io"
	"net/http"
	"time"
)

// BodyTime is how long a client may take to send a request's body. Headers have the same limit.
const BodyTime = 10 * time.Second

// LimitBodyTime cuts off bodies that take longer than BodyTime. A server-wide ReadTimeout would also end long-polls
// whose body arrived long ago. When a handler leaves a body unread, net/http reads up to 256 KiB of it and then closes
// the connection.
func LimitBodyTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			connection := http.NewResponseController(w)
			if connection.SetReadDeadline(time.Now().Add(BodyTime)) == nil {
				r.Body = &timedBody{r.Body, connection}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody lifts the deadline once the body has been read to its end.
type timedBody struct {
	io.ReadCloser
	connection *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.connection.SetReadDeadline(time.Time{})
	}
	return n, err
}
