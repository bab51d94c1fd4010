package sqlite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"switchyard/internal/store"
)

// FillDisk makes the database behave as if the disk were full, or no longer so.
func (db *DB) FillDisk(full bool) error {
	statement := "PRAGMA max_page_count = 4294967294"
	if full {
		statement = "PRAGMA max_page_count = 1" // it becomes the present size
	}
	_, err := db.write.ExecContext(context.Background(), statement)
	return err
}

// Words returns how many texts the index of words has, and its size in bytes.
func (db *DB) Words(ctx context.Context) (texts, size int, err error) {
	err = db.read.QueryRowContext(ctx, "SELECT (SELECT COUNT(*) FROM texts), SUM(LENGTH(block)) FROM text_words_data").
		Scan(&texts, &size)
	return texts, size, err
}

// CheckWords returns an error if an index of words is corrupt or differs from the texts.
func (db *DB) CheckWords(ctx context.Context) error {
	for _, index := range []string{"text_words", "story_words"} {
		if _, err := db.write.ExecContext(ctx, "INSERT INTO "+index+" ("+index+", rank) VALUES ('integrity-check', 1)"); err != nil {
			return fmt.Errorf("%s: %w", index, err)
		}
	}
	return nil
}

// Plan returns the steps in which SQLite executes a statement.
func (db *DB) Plan(ctx context.Context, statement string) (steps []string, err error) {
	rows, err := db.read.QueryContext(ctx, "EXPLAIN QUERY PLAN "+statement)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, rows.Err()
}

// LimitSearches sets the time limit of searches in databases that are opened before the test ends.
func LimitSearches(t testing.TB, limit time.Duration) {
	searchLimit = limit
	t.Cleanup(func() { searchLimit = store.SearchLimit })
}

// BusySearches takes all connections for searches until the test ends.
func (db *DB) BusySearches(t testing.TB) {
	t.Helper()
	for range searchers {
		tx, err := db.searches.Begin()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback() })
	}
}

// WordSegments returns the number of segments in the index of words, all of which a search reads.
func (db *DB) WordSegments(ctx context.Context) (n int, err error) {
	err = db.read.QueryRowContext(ctx, "SELECT COUNT(DISTINCT segid) FROM story_words_idx").Scan(&n)
	return n, err
}

// MaxLog exports maxLog.
const MaxLog = maxLog

// LogSize returns the size of the write-ahead log in bytes.
func (db *DB) LogSize() int64 { return db.logSize() }

// Read keeps a read of the database open until stop is called.
func (db *DB) Read(t testing.TB) (stop func()) {
	t.Helper()
	tx, err := db.read.Begin()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRow("SELECT COUNT(*) FROM state").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}
