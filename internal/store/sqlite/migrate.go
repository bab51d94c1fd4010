package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	"switchyard/internal/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks our databases. Development versions did not set it.
const applicationID = 0x53775964

// migrate applies new files in migrations/ to the database, in the order of their names and in one transaction.
// user_version is the number of files applied.
func (db *DB) migrate(ctx context.Context) error {
	var applied, id int
	const versions = "SELECT user_version, application_id FROM pragma_user_version, pragma_application_id"
	if err := db.read.QueryRowContext(ctx, versions).Scan(&applied, &id); err != nil {
		return err
	}
	scripts, err := migrations.ReadDir("migrations")
	if err != nil {
		return err
	}
	if applied < 0 {
		return fmt.Errorf("is damaged or not a database of switchyard (schema %d)", applied)
	}
	if applied == movedSchema {
		return errMoved(ctx, db.read)
	}
	if applied > 0 && id != applicationID {
		return errors.New(store.DevelopmentVersion)
	}
	if applied > len(scripts) {
		return fmt.Errorf("was written by a newer version of switchyard (schema %d, this one knows %d)",
			applied, len(scripts))
	}
	if applied == len(scripts) {
		return db.ensureWAL(ctx)
	}
	return db.Tx(ctx, nil, func(tx *sql.Tx) error {
		for _, script := range scripts[applied:] {
			text, err := migrations.ReadFile("migrations/" + script.Name())
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, string(text)); err != nil {
				return fmt.Errorf("%s: %w", script.Name(), err)
			}
		}
		_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(scripts)))
		return err
	})
}

// ensureWAL switches the journal to a write-ahead log, by opening the database for writing, if it is in another mode,
// as after restoring a backup. Otherwise the database is opened for writing at the first write, which makes the start
// faster.
func (db *DB) ensureWAL(ctx context.Context) error {
	var journal string
	if err := db.read.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&journal); err != nil || journal == "wal" {
		return err
	}
	return db.write.PingContext(ctx)
}
