package sqlite

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"time"
)

const (
	// maxLog is the size of the write-ahead log, in bytes, from which Checkpoints moves its content into the database. It
	// is SQLite's default.
	maxLog = 4 << 20
	// unattendedLog is the size in pages from which a write does that itself, in case Checkpoints does not run.
	unattendedLog = 16_000
	// checkpointPause is the shortest time between two checkpoints: during a long read the log cannot shrink.
	checkpointPause = 100 * time.Millisecond
)

// wrote wakes Checkpoints.
func (db *DB) wrote() {
	select {
	case db.written <- struct{}{}:
	default:
	}
}

// Checkpoints keeps the write-ahead log small until ctx ends, on its own connection: with SQLite's automatic
// checkpoints a write takes 30 ms longer now and then, and those behind it wait.
func (db *DB) Checkpoints(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-db.written:
		}
		for _, step := range []struct {
			from *sql.DB
			size int64
		}{
			{db.log, maxLog},
			// If writes are so frequent that there is always something new in the log, one of them has to wait.
			{db.write, 2 * maxLog},
		} {
			if db.logSize() <= step.size {
				break
			}
			if _, err := step.from.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)"); err != nil && ctx.Err() == nil {
				return db.Translate(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(checkpointPause):
			}
		}
	}
}

// logSize returns the size of the write-ahead log in bytes. The first write after a complete checkpoint truncates it to
// maxLog.
func (db *DB) logSize() int64 {
	info, err := os.Stat(filepath.Join(db.dir, FileName) + "-wal")
	if err != nil {
		return 0 // nothing has been written yet
	}
	return info.Size()
}
