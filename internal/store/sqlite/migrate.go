package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"switchyard/internal/files"
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
	return db.Tx(ctx, nil, func(ctx context.Context, tx *sql.Tx) error {
		for _, script := range scripts[applied:] {
			text, err := migrations.ReadFile("migrations/" + script.Name())
			if err != nil {
				return err
			}
			if err := store.Exec(ctx, tx, string(text)); err != nil {
				return fmt.Errorf("%s: %w", script.Name(), err)
			}
		}
		return nil
	}, setVersion(len(scripts)))
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

// MarkerName is the name of a file in the data directory by which a restored database is noticed. A backup does not
// have it.
const MarkerName = "switchyard.marker"

const identityKey = "identity"

// Identity returns a random text that belongs to this database. A new one has a different text, and so has one that was
// restored from a backup or replaced by an older copy: the database and the marker beside it agree on a text that
// changes with each start.
func (db *DB) Identity(ctx context.Context) (string, error) {
	db.identifying.Lock()
	defer db.identifying.Unlock()
	if db.identity != "" {
		return db.identity, nil
	}
	stored, err := db.State(ctx, identityKey)
	if err != nil {
		return "", err
	}
	path := filepath.Join(db.dir, MarkerName)
	marker, err := files.Read(path, files.Small)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	id, agreed, _ := strings.Cut(stored, " ")
	if id == "" || agreed == "" || agreed != string(marker) {
		id = rand.Text()
	}
	agreed = rand.Text()
	if err := db.SetState(ctx, identityKey, id+" "+agreed); err != nil {
		return "", err
	}
	if err := files.WriteAtomic(path, []byte(agreed)); err != nil {
		return "", err
	}
	db.identity = id
	return id, nil
}

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
		return fmt.Errorf("%w: %s", errDamaged, found)
	}
	return nil
}

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
	return openReadOnly(path, 1), nil
}

// MarkMoved marks the database as moved to another address. Open then returns an error that says so.
func (db *DB) MarkMoved(ctx context.Context, to string) error {
	return db.Tx(ctx, nil, store.Do(store.PutState, movedKey, to), setVersion(movedSchema))
}

func setVersion(n int) store.Step { return store.Do(fmt.Sprintf("PRAGMA user_version = %d", n)) }

func errMoved(ctx context.Context, db *sql.DB) error {
	var to string
	if err := db.QueryRowContext(ctx, "SELECT value FROM state WHERE key = $1", movedKey).Scan(&to); err != nil {
		return errors.New("was moved elsewhere")
	}
	return fmt.Errorf("was moved to %s: start the gateway with that as --database, or in another data directory", to)
}
