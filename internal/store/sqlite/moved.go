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

// movedSchema is the schema number of a database that has been moved; every version of the program refuses it. movedKey
// is the key of the new address.
const (
	movedSchema = 1_000_000
	movedKey    = "moved_to"
)

// OpenReadOnly opens the database in directory dir for a single reader. It returns an error if there is none.
func OpenReadOnly(dir string) (*sql.DB, error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return openReadOnly(path, 1)
}

// MarkMoved marks the database as moved to another address. Open then returns an error that says so.
func (db *DB) MarkMoved(ctx context.Context, to string) error {
	return db.Tx(ctx, nil, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, store.PutState, movedKey, to)
		if err == nil {
			_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", movedSchema))
		}
		return err
	})
}

func errMoved(ctx context.Context, db *sql.DB) error {
	var to string
	if err := db.QueryRowContext(ctx, "SELECT value FROM state WHERE key = $1", movedKey).Scan(&to); err != nil {
		return errors.New("was moved elsewhere")
	}
	return fmt.Errorf("was moved to %s: start the gateway with that as --database, or in another data directory", to)
}
