package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
)

// maxChecked is the size in bytes up to which every page of the database is checked at a start, in about 10 ms
// (BenchmarkOpen). In a larger one damage shows when it is met.
const maxChecked = 4 << 20

// check returns an error when SQLite cannot recover the database at path. Db is open for reading only: opened for writing, even
// a damaged database would take over what its write-ahead log holds.
func check(ctx context.Context, db *sql.DB, path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		return err
	}
	pragma := "PRAGMA quick_check(1)"
	if info.Size() > maxChecked {
		pragma = "PRAGMA schema_version"
	}
	var found string
	if err := db.QueryRowContext(ctx, pragma).Scan(&found); err != nil {
		return err
	}
	if found != "ok" && info.Size() <= maxChecked {
		return errors.New("database disk image is malformed: " + found)
	}
	return nil
}
