package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"switchyard/internal/config"
	"switchyard/internal/files"
	"switchyard/internal/store/sqlite"
)

// Names in the data directory, besides the database's.
const (
	lockName       = "gateway" // the lock file is gateway.lock
	sessionKeyName = "session.key"
)

// sessionKeySize is in bytes.
const sessionKeySize = 32

// openDataDir makes the data directory, readable by its owner only, and takes it for this process until unlock.
func openDataDir(dir string) (unlock func(), err error) {
	if err := files.MakePrivateDir(dir); err != nil {
		return nil, err
	}
	if err := makePrivate(dir); err != nil {
		return nil, err
	}
	unlock, err = files.TryLock(filepath.Join(dir, lockName))
	if errors.Is(err, files.ErrLocked) {
		return nil, fmt.Errorf("the data directory %s is in use by another running gateway", dir)
	}
	return unlock, err
}

// makePrivate takes the rights of others from a directory that was there before. One that holds other things than ours
// belongs to somebody else and keeps its mode: the files in it are private anyway.
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

// makeConfigDirPrivate takes the rights of others from our directory below the user's configuration, where secrets is a file in it:
// people make it for their switchyard.toml before we do. Another directory that holds secrets belongs to somebody else.
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

// checkNotEmptied returns an error where the data directory's database is an empty file although there was one before: beginning
// with nothing would hide that.
func checkNotEmptied(dir string) error {
	path := filepath.Join(dir, sqlite.FileName)
	database, err := os.Stat(path)
	if err != nil || database.Size() > 0 {
		return nil // sqlite.Open says what else is wrong with it
	}
	if _, err := os.Stat(filepath.Join(dir, sessionKeyName)); err != nil {
		return nil // a first start was cut short
	}
	return fmt.Errorf("the database %s is empty, but there was one before: put a backup in its place, or remove it to begin with nothing", path)
}

// sessionKey returns the key of the data directory's sessions, which is made once. Without its file all sessions end.
// Its caller has taken the directory.
func sessionKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, sessionKeyName)
	if err := files.SweepOrphansLocked(path); err != nil {
		return nil, err
	}
	text, err := files.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, sessionKeySize)
		rand.Read(key) // it never fails
		return key, files.WriteAtomic(path, []byte(hex.EncodeToString(key)+"\n"))
	}
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != sessionKeySize {
		return nil, fmt.Errorf("%s is damaged; without it a new one is made and everyone logs in again", path)
	}
	return key, files.Restrict(path)
}
