package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"switchyard/internal/store"
)

const (
	diskFull = "53100"
	denied   = "42501" // insufficient_privilege
)

// takeSpace temporarily takes 10 MB of disk space.
const takeSpace = `CREATE TEMPORARY TABLE switchyard_space ON COMMIT DROP
	AS SELECT repeat('x', 1000) FROM generate_series(1, 10000)`

// TryWrite makes a harmless write, which updates WriteFailure. After the disk was full it is a large one, since a few
// rows fit on a full disk as well.
func (db *DB) TryWrite(ctx context.Context) error {
	if _, failure := db.WriteFailure(); !errors.Is(failure, store.ErrNoSpace) {
		return db.Tables.TryWrite(ctx)
	}
	_, err := db.pool.Exec(ctx, takeSpace)
	var refused *pgconn.PgError
	if err == nil || errors.As(err, &refused) && refused.Code == denied { // this role may have no temporary tables
		db.HasSpace()
		return nil
	}
	return db.Wrote(err)
}

// Size returns the size of the database on disk, in bytes. free is always 0, since it is unknown.
func (db *DB) Size(ctx context.Context) (size, free int64, err error) {
	err = db.tables.QueryRowContext(ctx, "SELECT pg_database_size(current_database())").Scan(&size)
	return size, 0, db.Translate(err)
}
