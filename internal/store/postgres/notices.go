package postgres

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/domain"
)

// channel is the name of the channel for our notices, whose payload is the topic.
const channel = "switchyard"

const notifyStatement = "SELECT pg_notify($1, $2)"

// notify notifies other gateways of the topics of a transaction, once it has been committed.
func notify(ctx context.Context, tx *sql.Tx, topics []domain.Topic) error {
	for _, topic := range topics {
		if _, err := tx.ExecContext(ctx, notifyStatement, channel, topic); err != nil {
			return err
		}
	}
	return nil
}

const (
	// relisten is how long to wait before listening again after losing the connection.
	relisten = 500 * time.Millisecond
	// checkEvery is the time without a notice after which the connection is checked.
	checkEvery = 2 * time.Second
)

// notices tell gateways that a topic has changed. They then read the changes from the database.
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
		_ = n.listen(ctx) // an outage is logged elsewhere
		select {
		case <-time.After(relisten):
		case <-ctx.Done():
		}
	}
	return nil
}

// listen passes notices on until the connection is lost.
func (n *notices) listen(ctx context.Context) error {
	// A separate connection, since it would block one in the pool.
	connection, err := connect(ctx, n.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer connection.Close(context.WithoutCancel(ctx))
	if _, err := connection.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	n.wakeAll() // notices may have been missed
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
