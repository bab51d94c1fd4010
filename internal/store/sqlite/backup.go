package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"switchyard/internal/files"
	"switchyard/internal/supervise"
)

// Backup writes a copy of the database in directory dir to a new file at target, readable by its owner only. The copy
// is consistent even while a gateway writes to the database, and is synced to disk when Backup returns nil. Otherwise
// there is no file at target; the next backup removes what a killed one left beside it.
func Backup(ctx context.Context, dir, target string) (err error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); err != nil {
		return err
	}
	unlock, err := files.LockDir(dir)
	if errors.Is(err, files.ErrLocked) {
		return fmt.Errorf("another backup of %s is running", path)
	}
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Lstat(target); err == nil {
		return &fs.PathError{Op: "backup", Path: target, Err: syscall.EEXIST}
	}
	if err := removeUnfinished(target); err != nil {
		return err
	}
	// VACUUM INTO accepts an empty file.
	f, err := os.CreateTemp(filepath.Dir(target), unfinishedPrefix(target)+"*"+unfinishedSuffix)
	if err != nil {
		return err
	}
	defer func() {
		f.Close()
		if err != nil {
			err = errors.Join(err, removeUnfinished(target))
		}
	}()
	if err := f.Chmod(0o600); err != nil {
		return err
	}
	if err := copyTo(ctx, path, f.Name()); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), os.Rename(f.Name(), target)); err != nil {
		return err
	}
	return files.SyncDir(filepath.Dir(target))
}

// Unfinished copies have names such as .copy.db.123.tmp, and SQLite's journals such as .copy.db.123.tmp-journal.
const (
	unfinishedSuffix = ".tmp"
	journalSuffix    = "-journal"
)

func unfinishedPrefix(target string) string { return "." + filepath.Base(target) + "." }

func removeUnfinished(target string) error {
	dir := filepath.Dir(target)
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), journalSuffix)
		ours := strings.HasPrefix(name, unfinishedPrefix(target)) && strings.HasSuffix(name, unfinishedSuffix)
		if ours && entry.Type().IsRegular() {
			err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

func copyTo(ctx context.Context, path, target string) error {
	db := openReadOnly(path, 1)
	defer db.Close()
	if _, err := db.ExecContext(ctx, "VACUUM INTO $1", target); err != nil {
		return Failed(filepath.Dir(path), err)
	}
	return anonymize(ctx, target)
}

// anonymize removes the identity from a copy: once restored it is another database.
func anonymize(ctx context.Context, path string) error {
	db := openConnections(path, "_pragma=journal_mode(OFF)", 1, nil)
	defer db.Close()
	_, err := db.ExecContext(ctx, "DELETE FROM state WHERE key = $1", identityKey)
	return err
}

const (
	// maxLog is the size of the write-ahead log, in bytes, at which Checkpoints moves its content into the database. It
	// is SQLite's default.
	maxLog = 4 << 20
	// unattendedLog is the size in pages at which a write does that itself: Checkpoints is not running, or writes are
	// so frequent that there is always something new in the log.
	unattendedLog = 16_000
	// checkpointPause is the time between two checks of the log: during a long read it cannot shrink.
	checkpointPause = 500 * time.Millisecond
)

// Checkpoints keeps the write-ahead log small until ctx ends, on its own connection: with SQLite's automatic
// checkpoints a write occasionally takes 30 ms longer, and those behind it wait.
func (db *DB) Checkpoints(ctx context.Context) error {
	for supervise.Sleep(ctx, checkpointPause) {
		if db.logSize() <= maxLog {
			continue
		}
		if _, err := db.log.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)"); err != nil && ctx.Err() == nil {
			return db.Translate(err)
		}
	}
	return nil
}

// logSize returns the size of the write-ahead log in bytes. The first write after a complete checkpoint truncates it to
// maxLog.
func (db *DB) logSize() int64 {
	info, err := os.Stat(filepath.Join(db.dir, FileName) + "-wal")
	if err != nil {
		return 0 // nothing has been written yet
	}
	return info.Size()
}
