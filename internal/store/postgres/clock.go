package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/clock"
)

// Clock returns the clock of the database. It is read with each renewal of a lease.
func (db *DB) Clock() *clock.Clock { return &db.clock }

func readClock(ctx context.Context, pool *pgxpool.Pool, c *clock.Clock) error {
	var now time.Time
	asked := time.Now()
	if err := pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return err
	}
	c.Read(asked, time.Now(), now)
	return nil
}
