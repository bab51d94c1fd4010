package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
)

// maxChecked is the size, in bytes, up to which every page of the database is checked, at about 10 ms per MiB. In a
// larger one damage shows only when a page is read.
const maxChecked = 4 << 20

// Check reads every page of the database, unless it is large, and returns an error if SQLite cannot recover it. It does
// so only once. Nothing is written before the check: the first write runs it as well, and fails with the same error.
func (db *DB) Check() error { return db.check() }

// check returns an error if SQLite cannot recover the database at path. db must be open for reading only: opened for
// writing, even a damaged database would absorb its write-ahead log.
func check(db *sql.DB, path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		return err
	}
	pragma := "PRAGMA quick_check(1)"
	if info.Size() > maxChecked {
		pragma = "PRAGMA schema_version"
	}
	var found string
	if err := db.QueryRowContext(context.Background(), pragma).Scan(&found); err != nil {
		return err
	}
	if found != "ok" && info.Size() <= maxChecked {
		return errors.New("database disk image is malformed: " + found)
	}
	return nil
}

// checkedConnector opens connections for writing after the database has been checked.
type checkedConnector struct {
	check  func() error
	name   string
	driver driver.Driver
}

// Connect opens a connection.
func (c checkedConnector) Connect(context.Context) (driver.Conn, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return c.driver.Open(c.name)
}

// Driver returns the underlying driver.
func (c checkedConnector) Driver() driver.Driver { return c.driver }
