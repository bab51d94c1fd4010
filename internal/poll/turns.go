package poll

import (
	"context"
	"sync"
	"time"
)

const (
	// maxTurns is how many feeds are read from their beginning at a time: each may bring a whole buffer, and a gateway that
	// starts reads all of them.
	maxTurns = 32
	// turnLimit is when a server that does not answer loses its turn, so that slow ones do not hold up others.
	turnLimit = 250 * time.Millisecond
)

// turns hands out turns at reading.
type turns chan struct{}

// turn is the right to read a feed and to hold what it brought until it is stored.
type turn struct {
	give func() // may be called again
	slow *time.Timer
}

// take waits for a turn. It returns ctx's error when that ends first.
func (t turns) take(ctx context.Context) (turn, error) {
	select {
	case t <- struct{}{}:
		give := sync.OnceFunc(func() { <-t })
		return turn{give, time.AfterFunc(turnLimit, give)}, nil
	case <-ctx.Done():
		return turn{}, ctx.Err()
	}
}

// answered keeps the turn until give, unless the answer came too late for that.
func (t turn) answered() { t.slow.Stop() }
