package upstream

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// sizes bound the memory of all large answers together: to read more of an answer than one size, a call waits for a
// slot of the next size.
var sizes = [...]struct{ bytes, slots int }{
	{256 << 10, 0}, // no waiting: twice what a full feed has
	{1 << 20, 16},
	{maxAnswer, 3},
}

// slots holds a semaphore for each size: a channel with a value for each slot taken.
type slots [len(sizes)]chan struct{}

func newSlots() (s slots) {
	for i, size := range sizes {
		s[i] = make(chan struct{}, size.slots)
	}
	return s
}

// bodies are buffers of small answers, for reuse: most pipelines that are read have not changed.
var bodies = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// maxPooled is the largest buffer that is kept, in bytes.
const maxPooled = 64 << 10

// readBody reads an answer's body with a slot for its size, for which it waits at most patience. The caller releases both when
// it is done with them.
func (s slots) readBody(ctx context.Context, response *http.Response, patience time.Duration) (body []byte, release func(), err error) {
	taken, buffer := 0, bodies.Get().(*bytes.Buffer)
	release = func() {
		for ; taken > 0; taken-- {
			<-s[taken]
		}
		if buffer.Cap() <= maxPooled {
			buffer.Reset()
			bodies.Put(buffer)
		}
	}
	if response.ContentLength > maxAnswer {
		return nil, release, errTooLarge
	}
	if n := response.ContentLength; n > 0 && n < int64(sizes[0].bytes) {
		buffer.Grow(int(n) + bytes.MinRead)
	}
	for i, size := range sizes {
		if i > 0 {
			if err := s.take(ctx, i, patience); err != nil {
				return nil, release, err
			}
			taken = i
			buffer.Grow(size.bytes - buffer.Len() + bytes.MinRead)
		}
		if _, err := buffer.ReadFrom(io.LimitReader(response.Body, int64(size.bytes-buffer.Len()+1))); err != nil {
			return nil, release, err
		}
		if buffer.Len() <= size.bytes {
			return buffer.Bytes(), release, nil
		}
	}
	return nil, release, errTooLarge
}

// take waits for one of the slots of a size.
func (s slots) take(ctx context.Context, size int, patience time.Duration) error {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case s[size] <- struct{}{}:
		return nil
	case <-timeout.C:
		return os.ErrDeadlineExceeded
	case <-ctx.Done():
		return ctx.Err()
	}
}
