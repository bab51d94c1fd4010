package postgres

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

const (
	// channel is the name of the channel for our notifications, whose payload is the topic, and after a space the rows of
	// events that have been appended.
	channel = "switchyard"
	// maxPayload is what PostgreSQL allows for a payload, in bytes.
	maxPayload = 7999
	// maxCame is how many notifications' events are kept for the follower of the stream, which otherwise reads them.
	maxCame = 100
)

const notifyStatement = "SELECT pg_notify($1, $2)"

// notify notifies other gateways of the topics of a transaction, once it has been committed.
func notify(ctx context.Context, tx *sql.Tx, topics []domain.Topic) error {
	for _, topic := range topics {
		if err := store.Exec(ctx, tx, notifyStatement, channel, topic); err != nil {
			return err
		}
	}
	return nil
}

func payload(n store.Notice) string {
	if p := string(n.Topic) + " " + n.Rows; n.Rows != "" && len(p) <= maxPayload {
		return p
	}
	return string(n.Topic)
}

const (
	// relisten is how long to wait before listening again after losing the connection.
	relisten = 500 * time.Millisecond
	// checkEvery is the time without a notification after which the connection is checked.
	checkEvery = 2 * time.Second
)

// listener receives the notifications of a topic that has changed. Gateways then read the changes from the database.
type listener struct {
	pool *pgxpool.Pool

	mu      sync.Mutex
	waiting map[domain.Topic]chan struct{}
	came    []string // the rows of notifications of events since newEvents, none if one of them had none
}

func newListener(pool *pgxpool.Pool) *listener {
	return &listener{pool: pool, waiting: map[domain.Topic]chan struct{}{}}
}

func (l *listener) changed(topic domain.Topic) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[topic] == nil {
		l.waiting[topic] = make(chan struct{})
	}
	return l.waiting[topic]
}

// newEvents returns changed of the events' topic, and the rows of events that came with notifications since its last
// call.
func (l *listener) newEvents() (changed <-chan struct{}, came []string) {
	changed = l.changed(domain.TopicEvents)
	l.mu.Lock()
	defer l.mu.Unlock()
	came, l.came = l.came, nil
	return changed, came
}

func (l *listener) wake(payload string) {
	name, rows, _ := strings.Cut(payload, " ")
	topic := domain.Topic(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case topic != domain.TopicEvents:
	case rows == "" || len(l.came) == maxCame:
		l.came = nil
	default:
		l.came = append(l.came, rows)
	}
	if waiting := l.waiting[topic]; waiting != nil {
		close(waiting)
		delete(l.waiting, topic)
	}
}

func (l *listener) wakeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.came = nil
	for topic, waiting := range l.waiting {
		close(waiting)
		delete(l.waiting, topic)
	}
}

// run passes notifications on until ctx ends. It listens again whenever the connection is lost.
func (l *listener) run(ctx context.Context) error {
	for ctx.Err() == nil {
		_ = l.listen(ctx) // an outage is logged elsewhere
		select {
		case <-time.After(relisten):
		case <-ctx.Done():
		}
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
	l.wakeAll() // notifications may have been missed
	for {
		waiting, cancel := context.WithTimeout(ctx, checkEvery)
		notification, err := connection.WaitForNotification(waiting)
		cancel()
		switch {
		case err == nil:
			l.wake(notification.Payload)
		case ctx.Err() != nil || waiting.Err() == nil || connection.IsClosed():
			return err
		default:
			if err := connection.Ping(ctx); err != nil {
				return err
			}
		}
	}
}
