package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"switchyard/internal/files"
)

// Backup writes a copy of the database in directory dir to the new file at target, readable by its owner only. The copy
// is of one moment, also while a gateway writes to the database, and it is on the disk when Backup returns nil. After an
// error there is no file at target, unless there was one before.
func Backup(ctx context.Context, dir, target string) (err error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600) // VACUUM INTO takes an empty file
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			err = errors.Join(err, os.Remove(target))
		}
	}()
	if err := f.Chmod(0o600); err != nil {
		return err
	}
	db, err := openReadOnly(path)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "VACUUM INTO $1", target); err != nil {
		return fmt.Errorf("database %s: %w", path, err)
	}
	return errors.Join(f.Sync(), files.SyncDir(filepath.Dir(target)))
}

// openReadOnly opens the database at path for one reader, which changes nothing in it.
func openReadOnly(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(5000)")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}
