package sqlite

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"time"
)

const (
	// maxLog is the size of the write-ahead log, in bytes, from which Checkpoints moves its content into the database: as much as
	// SQLite lets it grow by default.
	maxLog = 4 << 20
	// unattendedLog is the size in pages from which a write does that itself, for when Checkpoints does not run.
	unattendedLog = 16_000
	// checkpointPause is the least time between two checkpoints. While a long read goes on, the log cannot shrink.
	checkpointPause = 100 * time.Millisecond
)

// wrote wakes Checkpoints.
func (db *DB) wrote() {
	select {
	case db.written <- struct{}{}:
	default:
	}
}

// Checkpoints keeps the write-ahead log small until ctx ends, beside the writes: with SQLite's own automatic checkpoints a
// write takes 30 ms longer now and then, and those behind it wait.
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
			// Where writes follow each other so closely that there is always something new in the log, one has to wait.
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

// logSize is the size of the write-ahead log in bytes. The first write after a complete checkpoint cuts it to maxLog.
func (db *DB) logSize() int64 {
	info, err := os.Stat(filepath.Join(db.dir, FileName) + "-wal")
	if err != nil {
		return 0 // nothing was written yet
	}
	return info.Size()
}
