package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
)

// maxChecked is the size in bytes up to which every page of the database is checked, in about 10 ms for each MiB. In a larger one
// damage shows when it is met.
const maxChecked = 4 << 20

// Check reads every page of the database, unless it is large, and returns an error where SQLite cannot recover it. It does so once.
// Nothing is written before: the first write checks, too, and fails with the same error.
func (db *DB) Check() error { return db.check() }

// check returns an error when SQLite cannot recover the database at path. Db is open for reading only: opened for writing, even
// a damaged database would take over what its write-ahead log holds.
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

// checkedConnector opens connections for writing once the database was checked.
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

// Driver is what opens them.
func (c checkedConnector) Driver() driver.Driver { return c.driver }
