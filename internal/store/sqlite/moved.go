package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"switchyard/internal/store"
)

// movedSchema is the schema number of a database whose data was moved elsewhere; every version of the program refuses it.
// movedKey is the key under which the new place is stored.
const (
	movedSchema = 1_000_000
	movedKey    = "moved_to"
)

// OpenReadOnly opens the database in directory dir for one reader, which changes nothing in it. It is an error that there is
// none.
func OpenReadOnly(dir string) (*sql.DB, error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return openReadOnly(path, 1)
}

// MarkMoved notes that all that is stored was moved to another place. From then on Open says so.
func (db *DB) MarkMoved(ctx context.Context, to string) error {
	return db.Tx(ctx, nil, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, store.PutState, movedKey, to)
		if err == nil {
			_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", movedSchema))
		}
		return err
	})
}

// errMoved is the error of a database that MarkMoved was called for.
func errMoved(ctx context.Context, db *sql.DB) error {
	var to string
	if err := db.QueryRowContext(ctx, "SELECT value FROM state WHERE key = $1", movedKey).Scan(&to); err != nil {
		return errors.New("was moved elsewhere")
	}
	return fmt.Errorf("was moved to %s: start the gateway with that as --database, or in another data directory", to)
}
