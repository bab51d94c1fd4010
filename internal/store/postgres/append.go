package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// AppendEvents stores reads; see store.Tables.
func (db *DB) AppendEvents(ctx context.Context, reads []domain.FeedRead) (domain.Appended, error) {
	db.pace.begin()
	appended, err := db.Tables.AppendEvents(ctx, reads)
	db.pace.end(err)
	return appended, err
}

// transact is Transact of store.Engine. It takes two round trips, whatever it stores: one locks and reads, the other
// writes, notifies other gateways and commits.
func (db *DB) transact(
	ctx context.Context, read []store.Statement, write func() ([]store.Statement, []domain.Topic, error),
) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	// AcquireFunc drops a connection that is still in the transaction.
	err := db.leader.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		if err := send(ctx, c, append([]store.Statement{{SQL: "BEGIN"}}, read...)); err != nil {
			return err
		}
		statements, about, err := write()
		if err != nil {
			return err
		}
		for _, topic := range about {
			statements = append(statements, store.Statement{SQL: notifyStatement, Args: []any{channel, topic}})
		}
		return send(ctx, c, append(statements, store.Statement{SQL: "COMMIT"}))
	})
	db.unblock(ctx, err)
	return err
}

func send(ctx context.Context, c *pgxpool.Conn, statements []store.Statement) error {
	var batch pgx.Batch
	for _, s := range statements {
		queued := batch.Queue(s.SQL, s.Args...)
		if s.Each == nil {
			continue
		}
		queued.Query(func(rows pgx.Rows) error {
			for rows.Next() {
				if err := s.Each(rows); err != nil {
					return err
				}
			}
			return rows.Err()
		})
	}
	return c.SendBatch(ctx, &batch).Close()
}
