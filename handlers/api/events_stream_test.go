package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
)

// slowConnection is a response whose client reads nothing once stalled is set: a write then blocks until its deadline.
type slowConnection struct {
	header   http.Header
	mu       sync.Mutex
	body     bytes.Buffer
	deadline time.Time
	stalled  bool
	largest  int // of the writes, in bytes
}

func (c *slowConnection) Header() http.Header                { return c.header }
func (c *slowConnection) WriteHeader(int)                    {}
func (c *slowConnection) FlushError() error                  { return nil }
func (c *slowConnection) SetWriteDeadline(t time.Time) error { c.deadline = t; return nil }

func (c *slowConnection) Write(b []byte) (int, error) {
	if c.stalled && len(b) > 0 {
		if c.deadline.IsZero() {
			return 0, errors.New("would block for ever")
		}
		time.Sleep(time.Until(c.deadline))
		return 0, errors.New("deadline exceeded")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.largest = max(c.largest, len(b))
	return c.body.Write(b)
}

func (c *slowConnection) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.body.String()
}

// inBubble runs a stream of the whole gateway on connection, in a synctest bubble.
func inBubble(t *testing.T, connection *slowConnection, test func(svc *service.Service, ended <-chan struct{})) {
	synctest.Test(t, func(t *testing.T) {
		g := gatewaytest.New(t, service.Options{}, handlers.Gateway{})
		ctx, cancel := context.WithCancel(context.Background())
		connection.header = http.Header{}
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/gateway/events/stream", nil)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			g.HTTP.Handler().ServeHTTP(connection, r)
		}()
		synctest.Wait()
		test(g.Service, ended)
		cancel()
		<-ended
	})
}

func TestSilentStreamSendsAKeepaliveEvery15Seconds(t *testing.T) {
	var c slowConnection
	inBubble(t, &c, func(*service.Service, <-chan struct{}) {
		for n := range 4 {
			synctest.Wait()
			if got, want := c.text(), "id: 0\n\n"+strings.Repeat(":\n\n", n); got != want {
				t.Errorf("after %d s: %q, want %q", 15*n, got, want)
			}
			time.Sleep(15 * time.Second)
		}
	})
}

func TestHugeEventsAreStreamedWithoutAGap(t *testing.T) {
	var c slowConnection
	inBubble(t, &c, func(svc *service.Service, _ <-chan struct{}) {
		read := domain.FeedRead{Cursor: domain.FeedCursor{Project: "alpha"}}
		for n := range 3 { // each more than one page of the store has
			r, err := domain.ParseRecord([]byte(fmt.Sprintf(`{"timestamp_ms":%d,"huge":"%s"}`, n, strings.Repeat("x", 4<<20))))
			if err != nil {
				t.Fatal(err)
			}
			read.Records = append(read.Records, r)
		}
		if err := svc.Events.Record(context.Background(), read); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var ids []string
		for line := range strings.Lines(c.text()) {
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				ids = append(ids, strings.TrimSpace(id))
			}
		}
		if got := strings.Join(ids, " "); got != "0 1 2 3" {
			t.Errorf("streamed %q", got)
		}
	})
}

// TestReadersOfLargeEventsHoldLittle: a client that reads nothing holds the memory of a write until it is disconnected, and there
// may be hundreds of them.
func TestReadersOfLargeEventsHoldLittle(t *testing.T) {
	var c slowConnection
	inBubble(t, &c, func(svc *service.Service, _ <-chan struct{}) {
		read := domain.FeedRead{Cursor: domain.FeedCursor{Project: "alpha"}}
		for n := range 60 {
			r, err := domain.ParseRecord([]byte(fmt.Sprintf(`{"timestamp_ms":%d,"large":"%s"}`, n, strings.Repeat("x", 60_000))))
			if err != nil {
				t.Fatal(err)
			}
			read.Records = append(read.Records, r)
		}
		if err := svc.Events.Record(context.Background(), read); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := strings.Count(c.text(), "data: "); got != 60 {
			t.Errorf("%d events were streamed", got)
		}
		if c.largest > 256<<10 {
			t.Errorf("%d bytes were written at once", c.largest)
		}
	})
}

func TestReaderThatReadsNothingIsDisconnected(t *testing.T) {
	var c slowConnection
	inBubble(t, &c, func(svc *service.Service, ended <-chan struct{}) {
		c.stalled = true
		began := time.Now()
		for i := range 3 {
			r := domain.NewFeedGap(1, time.UnixMilli(int64(i)))
			if err := svc.Events.Record(context.Background(), domain.FeedRead{Cursor: domain.FeedCursor{Project: fmt.Sprint(i)}, Records: []domain.Record{r}}); err != nil {
				t.Error(err)
			}
		}
		<-ended
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("dropped after %v, want 10 s", took)
		}
	})
}
