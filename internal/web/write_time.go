package web

import (
	"net/http"
	"time"
)

// WriteTime is how long a client may take to accept an answer, from its first byte on.
const WriteTime = 30 * time.Second

// LimitWriteTime lets clients go that do not accept their answer in WriteTime. Waiting for an answer does not count. A
// handler that sets a write deadline after it has written the status keeps its own.
func LimitWriteTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &timedWriter{ResponseWriter: w} // net/http has lifted the deadline of the connection's last answer
		next.ServeHTTP(answer, r)
		answer.begin() // what is empty, too, has to be sent
	})
}

// timedWriter sets the deadline when writing begins. http.ResponseController finds the rest by Unwrap.
type timedWriter struct {
	http.ResponseWriter
	begun bool
}

func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *timedWriter) WriteHeader(status int) {
	w.begin()
	w.ResponseWriter.WriteHeader(status)
}

func (w *timedWriter) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

func (w *timedWriter) begin() {
	if !w.begun {
		w.begun = true
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(WriteTime)) // every connection can
	}
}
