package upstream

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"switchyard/internal/keyed"
)

// sizes bound the memory of all large answers together: to read more of an answer than one size, a call waits for a
// slot of the next size.
var sizes = [...]struct{ bytes, slots int }{
	{256 << 10, 0}, // no waiting: twice what a full feed has
	{1 << 20, 16},
	{maxAnswer, 3},
}

// maxLarge is how many large answers of one project are read at a time, so that a slow one leaves slots to others.
const maxLarge = 2

// slots are the semaphores of large answers: channels with a value for each slot in use.
type slots struct {
	sizes    [len(sizes)]chan struct{}
	projects *keyed.Semaphore
}

func newSlots() *slots {
	s := &slots{projects: keyed.NewSemaphore(maxLarge)}
	for i, size := range sizes {
		s.sizes[i] = make(chan struct{}, size.slots)
	}
	return s
}

// readBody reads an answer's body, until enough reports true if that is not nil, with slots for its size, for which it
// waits until ctx ends. The caller releases all when it is done with them.
func (s *slots) readBody(
	ctx context.Context, project string, response *http.Response, enough func([]byte) bool,
) (body []byte, release func(), err error) {
	var buffer bytes.Buffer
	var held []func()
	release = func() {
		for _, free := range held {
			free()
		}
	}
	var source io.Reader = response.Body
	if enough != nil {
		source = partReader{source, func() bool { return enough(buffer.Bytes()) }}
	}
	if response.ContentLength > maxAnswer {
		return nil, release, errTooLarge
	}
	if n := response.ContentLength; n > 0 && n < int64(sizes[0].bytes) {
		buffer.Grow(int(n) + bytes.MinRead)
	}
	for i, size := range sizes {
		if i == 1 {
			free, err := s.projects.Acquire(ctx, project)
			if err != nil {
				return nil, release, err
			}
			held = append(held, free)
		}
		if i > 0 {
			select {
			case s.sizes[i] <- struct{}{}:
			case <-ctx.Done():
				return nil, release, ctx.Err()
			}
			held = append(held, func() { <-s.sizes[i] })
			buffer.Grow(size.bytes - buffer.Len() + bytes.MinRead)
		}
		if _, err := buffer.ReadFrom(io.LimitReader(source, int64(size.bytes-buffer.Len()+1))); err != nil {
			return nil, release, err
		}
		if buffer.Len() <= size.bytes {
			return buffer.Bytes(), release, nil
		}
	}
	return nil, release, errTooLarge
}

// partReader ends as soon as enough reports true, which is asked before each read.
type partReader struct {
	io.Reader
	enough func() bool
}

func (r partReader) Read(p []byte) (int, error) {
	if r.enough() {
		return 0, io.EOF
	}
	return r.Reader.Read(p)
}
