// Package files writes small private files atomically, so that a crash leaves either the old or the new content, and
// locks them between processes. It knows nothing about their content.
package files

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// privateFile and privateDir are the modes of everything that this package creates: accessible to the owner only.
const (
	privateFile fs.FileMode = 0o600
	privateDir  fs.FileMode = 0o700
)

// WriteAtomic replaces the content of the file at path by data, and sets its mode to 0600 regardless of the umask.
// Missing directories are created with mode 0700; existing ones keep theirs. If path is a symbolic link, the file that
// it points to is replaced. When WriteAtomic returns nil the content has been synced to disk; when it fails, the old
// file is unchanged.
//
// A writer that reads before it writes, or may run concurrently with SweepOrphans, must hold Lock(path).
func WriteAtomic(path string, data []byte) error {
	target, err := resolve(path)
	if err != nil {
		return err
	}
	if info, err := os.Stat(target); err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "write", Path: path, Err: errNotRegular}
	}
	if err := MakePrivateDir(filepath.Dir(target)); err != nil {
		return err
	}
	if err := replace(target, data); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: cause(err)}
	}
	return nil
}

// cause strips the names of temporary files, which mean nothing to people.
func cause(err error) error {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number
	}
	return err
}

func replace(target string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(target), tempPattern(target))
	if err != nil {
		return err
	}
	if err := fill(temp, data); err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	if err := os.Rename(temp.Name(), target); err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return SyncDir(filepath.Dir(target))
}

func fill(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Chmod(privateFile)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// tempPattern and tempGlob return patterns, for os.CreateTemp and filepath.Match, for the temporary files of target,
// which are hidden files beside it.
func tempPattern(target string) string { return "." + filepath.Base(target) + ".*.tmp" }

func tempGlob(target string) string {
	quoted := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(filepath.Base(target))
	return "." + quoted + ".*.tmp"
}

// SyncDir makes new names in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// MakePrivateDir creates dir and missing parents with mode 0700 under any umask. Existing directories are not changed.
func MakePrivateDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := MakePrivateDir(parent); err != nil {
			return err
		}
	}
	switch err := os.Mkdir(dir, privateDir); {
	case errors.Is(err, fs.ErrExist): // another process was faster
		return nil
	case err != nil:
		return err
	}
	return os.Chmod(dir, privateDir) // the umask may have removed permissions of the owner
}

// Restrict sets the mode of the file at path to 0600. A missing file is not an error.
func Restrict(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode().Perm() == privateFile:
		return nil
	}
	return os.Chmod(path, privateFile)
}

// SweepOrphans removes temporary files that killed writers of path left behind, holding Lock(path).
func SweepOrphans(path string) error {
	target, err := resolve(path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Dir(target)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := Lock(path)
	if err != nil {
		return err
	}
	defer unlock()
	return SweepOrphansLocked(path)
}

// SweepOrphansLocked is SweepOrphans for a caller that holds Lock(path) already.
func SweepOrphansLocked(path string) error {
	target, err := resolve(path)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Dir(target))
	for _, entry := range entries {
		if matched, _ := filepath.Match(tempGlob(target), entry.Name()); matched && entry.Type().IsRegular() {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(target), entry.Name())))
		}
	}
	return err
}

// maxLinks is how many symbolic links are followed, as many as in Linux.
const maxLinks = 40

// resolve follows symbolic links. The file need not exist.
func resolve(path string) (string, error) {
	start := path
	for range maxLinks {
		dir, name := filepath.Split(path) // unlike Dir and Join, leaves ".." to the file system
		if real, err := filepath.EvalSymlinks(cmp.Or(dir, ".")); err == nil {
			dir = real
		}
		path = filepath.Join(dir, name)
		link, err := os.Readlink(path)
		if err != nil {
			return path, nil // no link, or nothing there yet
		}
		if path = link; !filepath.IsAbs(link) {
			path = dir + string(filepath.Separator) + link
		}
	}
	return "", &fs.PathError{Op: "open", Path: start, Err: syscall.ELOOP}
}
