package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"switchyard/internal/files"
)

// MarkerName is the name of a file in the data directory by which a restored database is noticed. A backup does not
// have it.
const MarkerName = "switchyard.marker"

const identityKey = "identity"

// Identity returns a random text that belongs to this database. A new one has another, and so has one that was restored
// from a backup or replaced by an older copy: the database and the marker beside it agree on a text that changes with
// each start.
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
	marker, err := os.ReadFile(path)
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
