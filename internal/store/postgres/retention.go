package postgres

import "context"

// LastEventID returns the greatest id ever assigned, 0 before the first.
func (db *DB) LastEventID(ctx context.Context) (id int64, err error) {
	err = db.tables.QueryRowContext(ctx, "SELECT last_id FROM stream").Scan(&id)
	return id, db.Translate(err)
}

// Size returns the size of the database on disk, in bytes. free is always 0, since it is unknown.
func (db *DB) Size(ctx context.Context) (size, free int64, err error) {
	err = db.tables.QueryRowContext(ctx, "SELECT pg_database_size(current_database())").Scan(&size)
	return size, 0, db.Translate(err)
}
