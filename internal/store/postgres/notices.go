package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// channel is the one that all notices of ours go through; the payload is the topic.
const channel = "switchyard"

// TopicDuties is about gateways that came or went and duties that were released.
const TopicDuties = "duties"

// recheck is how often everybody looks without a notice: one may be lost with its connection, and PgBouncer passes none.
const recheck = time.Second

// Notices tells when another gateway has changed something. It says nothing about what: who is told looks.
type Notices struct {
	pool *pgxpool.Pool

	mu      sync.Mutex
	waiting map[string]chan struct{}
}

// NewNotices returns the notices of the database of pool. They come while Run runs.
func NewNotices(pool *pgxpool.Pool) *Notices {
	return &Notices{pool: pool, waiting: map[string]chan struct{}{}}
}

// Changed returns a channel that is closed at the next notice about topic, or after a second.
func (n *Notices) Changed(topic string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting[topic] == nil {
		n.waiting[topic] = make(chan struct{})
	}
	return n.waiting[topic]
}

func (n *Notices) wake(topic string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if waiting := n.waiting[topic]; waiting != nil {
		close(waiting)
		delete(n.waiting, topic)
	}
}

func (n *Notices) wakeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for topic, waiting := range n.waiting {
		close(waiting)
		delete(n.waiting, topic)
	}
}

// Run passes notices on until ctx ends or the connection is lost, which is its error.
func (n *Notices) Run(ctx context.Context) error {
	var looking sync.WaitGroup
	defer looking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	looking.Go(func() { n.recheck(ctx) })
	// A connection of its own: one of the pool would be missing there.
	connection, err := pgx.ConnectConfig(ctx, n.pool.Config().ConnConfig)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer connection.Close(context.Background())
	if _, err := connection.Exec(ctx, "LISTEN "+channel); err != nil {
		return unlessEnded(ctx, err)
	}
	n.wakeAll() // whatever was said in the meantime
	for {
		notice, err := connection.WaitForNotification(ctx)
		if err != nil {
			return unlessEnded(ctx, err)
		}
		n.wake(notice.Payload)
	}
}

func (n *Notices) recheck(ctx context.Context) {
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			n.wakeAll()
		case <-ctx.Done():
			return
		}
	}
}

// unlessEnded is err, nil if it came of ctx having ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
