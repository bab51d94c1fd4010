package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/domain"
	"switchyard/internal/keyed"
	"switchyard/internal/store"
	"switchyard/internal/supervise"
)

// channel is the name of the channel for our notifications, whose payload is the topic.
const channel = "switchyard"

const notifyStatement = "SELECT pg_notify($1, $2)"

// notify notifies other gateways of a topic once the transaction has been committed.
func notify(topic domain.Topic) store.Step { return store.Do(notifyStatement, channel, topic) }

const (
	// relisten is how long to wait before listening again after losing the connection.
	relisten = 500 * time.Millisecond
	// checkEvery is the time without a notification after which the connection is checked.
	checkEvery = 2 * time.Second
)

// listener receives notifications of changed topics. Gateways then read the changes from the database.
type listener struct {
	keyed.Waiters // by topic
	pool          *pgxpool.Pool
}

// run passes notifications on until ctx ends. It listens again whenever the connection is lost.
func (l *listener) run(ctx context.Context) error {
	for again := true; again; again = supervise.Sleep(ctx, relisten) {
		_ = l.listen(ctx) // an outage is logged elsewhere
	}
	return nil
}

// listen passes notifications on until the connection is lost.
func (l *listener) listen(ctx context.Context) error {
	// A separate connection, since it would block one in the pool.
	connection, err := connect(ctx, l.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer connection.Close(context.WithoutCancel(ctx))
	if _, err := connection.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	l.WakeAll() // notifications may have been missed
	for {
		waiting, cancel := context.WithTimeout(ctx, checkEvery)
		notification, err := connection.WaitForNotification(waiting)
		cancel()
		switch {
		case err == nil:
			l.Wake(notification.Payload)
		case ctx.Err() != nil || waiting.Err() == nil || connection.IsClosed():
			return err
		default:
			if err := connection.Ping(ctx); err != nil {
				return err
			}
		}
	}
}
