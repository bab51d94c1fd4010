package postgres

import (
	"context"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// clockAhead is the prefix of the keys in the table state under which it is stored since when a project's clock has been ahead, in Unix
// milliseconds.
const clockAhead = "clock_ahead "

// ClocksAhead returns since when the clocks of projects have been ahead, by project.
func (db *DB) ClocksAhead(ctx context.Context) (map[string]time.Time, error) {
	rows, err := db.tables.QueryContext(ctx, "SELECT key, value FROM state WHERE key > $1 AND key < $2", clockAhead, clockAhead+"\U0010FFFF")
	if err != nil {
		return nil, db.Translate(err)
	}
	defer rows.Close()
	since := map[string]time.Time{}
	for rows.Next() {
		var key, value string
		if err := rows.Scan(&key, &value); err != nil {
			return nil, db.Translate(err)
		}
		ms, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return nil, domain.WrapError(domain.Internal, err, "a stored time is malformed")
		}
		since[strings.TrimPrefix(key, clockAhead)] = time.UnixMilli(ms)
	}
	return since, db.Translate(rows.Err())
}

// SetClockAhead stores since when a project's clock has been ahead; zero means that it is not.
func (db *DB) SetClockAhead(ctx context.Context, project string, since time.Time) error {
	if since.IsZero() {
		_, err := db.pool.Exec(ctx, "DELETE FROM state WHERE key = $1", clockAhead+project)
		return db.Translate(err)
	}
	return db.SetState(ctx, clockAhead+project, strconv.FormatInt(since.UnixMilli(), 10))
}
