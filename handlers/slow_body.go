package handlers

import (
	"io"
	"net/http"
	"time"
)

// bodyTime is how long a request's body may take, as its headers may.
const bodyTime = 10 * time.Second

// limitBodyTime cuts off bodies that take too long. A server-wide ReadTimeout would do that as well, but would also end
// requests that wait for news after their body came.
func limitBodyTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			connection := http.NewResponseController(w)
			if connection.SetReadDeadline(time.Now().Add(bodyTime)) == nil {
				r.Body = &timedBody{r.Body, connection}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody lifts the limit when the body is whole.
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
