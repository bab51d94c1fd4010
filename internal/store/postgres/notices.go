package postgres

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/domain"
)

// channel is the one that all notices of ours go through; the payload is the topic.
const channel = "switchyard"

const notifyStatement = "SELECT pg_notify($1, $2)"

// notify tells other gateways, as soon as the transaction is committed, what it was about.
func notify(ctx context.Context, tx *sql.Tx, topics []domain.Topic) error {
	for _, topic := range topics {
		if _, err := tx.ExecContext(ctx, notifyStatement, channel, topic); err != nil {
			return err
		}
	}
	return nil
}

const (
	// relisten is how long to wait before listening again after the connection was lost.
	relisten = 500 * time.Millisecond
	// checkEvery is after how long without a notice the connection is checked.
	checkEvery = 2 * time.Second
)

// notices tell gateways that something of a topic has changed, not what: they read that themselves.
type notices struct {
	pool *pgxpool.Pool

	mu      sync.Mutex
	waiting map[domain.Topic]chan struct{}
}

func newNotices(pool *pgxpool.Pool) *notices {
	return &notices{pool: pool, waiting: map[domain.Topic]chan struct{}{}}
}

func (n *notices) changed(topic domain.Topic) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting[topic] == nil {
		n.waiting[topic] = make(chan struct{})
	}
	return n.waiting[topic]
}

func (n *notices) wake(topic domain.Topic) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if waiting := n.waiting[topic]; waiting != nil {
		close(waiting)
		delete(n.waiting, topic)
	}
}

func (n *notices) wakeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for topic, waiting := range n.waiting {
		close(waiting)
		delete(n.waiting, topic)
	}
}

// run passes notices on until ctx ends. It listens again whenever the connection is lost.
func (n *notices) run(ctx context.Context) error {
	for ctx.Err() == nil {
		_ = n.listen(ctx) // whoever needs the database notices that it is away
		select {
		case <-time.After(relisten):
		case <-ctx.Done():
		}
	}
	return nil
}

// listen passes notices on until the connection is lost.
func (n *notices) listen(ctx context.Context) error {
	// A connection of its own: one of the pool would be missing there.
	connection, err := connect(ctx, n.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer connection.Close(context.WithoutCancel(ctx))
	if _, err := connection.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	n.wakeAll() // whatever was said in the meantime
	for {
		waiting, cancel := context.WithTimeout(ctx, checkEvery)
		notice, err := connection.WaitForNotification(waiting)
		cancel()
		switch {
		case err == nil:
			n.wake(domain.Topic(notice.Payload))
		case ctx.Err() != nil || waiting.Err() == nil || connection.IsClosed():
			return err
		default:
			if err := connection.Ping(ctx); err != nil {
				return err
			}
		}
	}
}
