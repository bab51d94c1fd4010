package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"switchyard/internal/config"
	"switchyard/internal/files"
	"switchyard/internal/store/sqlite"
)

// Names of files in the data directory, besides the database.
const (
	lockName       = "gateway" // the lock file is gateway.lock
	sessionKeyName = "session.key"
)

const sessionKeySize = 32 // bytes

// openDataDir creates the data directory, readable by its owner only, and locks it for this process until unlock.
func openDataDir(dir string) (unlock func(), err error) {
	if err := files.MakePrivateDir(dir); err != nil {
		return nil, err
	}
	if err := makePrivate(dir); err != nil {
		return nil, err
	}
	unlock, err = files.TryLock(filepath.Join(dir, lockName))
	if errors.Is(err, files.ErrLocked) {
		return nil, inUseError{dir}
	}
	return unlock, err
}

// makePrivate removes other users' permissions from an existing directory that is empty or holds our database. Any
// other one keeps its mode: our files in it are private anyway.
func makePrivate(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() == 0o700 {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(dir, sqlite.FileName))
	if len(entries) > 0 && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.Chmod(dir, 0o700)
}

// makeConfigDirPrivate removes other users' permissions from our configuration directory if the file secrets is in it:
// people create that directory for their switchyard.toml before we do. Any other directory keeps its mode.
func makeConfigDirPrivate(secrets string) error {
	own, ok := config.Expand("$XDG_CONFIG_HOME/switchyard", os.Getenv)
	if !ok || filepath.Dir(secrets) != own {
		return nil
	}
	info, err := os.Stat(own)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || info.Mode().Perm() == 0o700 {
		return err
	}
	return os.Chmod(own, 0o700)
}

// checkNotEmptied returns an error if the database is an empty file although there was one before: starting with an
// empty one would hide the loss. It warns if that database is gone, which is also how to start with an empty one.
func checkNotEmptied(dir string, log *slog.Logger) error {
	path := filepath.Join(dir, sqlite.FileName)
	if key, err := os.Stat(filepath.Join(dir, sessionKeyName)); err != nil || !key.Mode().IsRegular() {
		return nil // the first start, or it was interrupted; sessionKey reports anything else wrong with the key
	}
	database, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		log.Warn("The database is gone, though there was one before: starting with an empty one", "database", path)
	case err == nil && database.Size() == 0:
		return fmt.Errorf("the database %s is empty, but there was one before: replace it with a backup, or remove it "+
			"to start with an empty one", path)
	}
	return nil // sqlite.Open reports anything else wrong with it
}

// sessionKey returns the key that signs sessions, and creates it if there is none; removing its file ends all sessions.
// The caller holds the directory's lock.
func sessionKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, sessionKeyName)
	if err := files.Tidy(path, true); err != nil {
		return nil, err
	}
	text, err := files.Read(path, files.Small)
	if errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, sessionKeySize)
		rand.Read(key) // never fails
		return key, files.WriteAtomic(path, []byte(hex.EncodeToString(key)+"\n"))
	}
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != sessionKeySize {
		return nil, fmt.Errorf("%s is damaged; remove it to have a new one created, which ends all sessions", path)
	}
	return key, nil
}
