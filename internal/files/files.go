// Package files reads small files, and writes private ones atomically, so that a crash leaves either the old or the new
// content, and locks them between processes. It knows nothing about their content.
package files

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// privateFile and privateDir are the modes of everything that this package creates: accessible to the owner only.
const (
	privateFile fs.FileMode = 0o600
	privateDir  fs.FileMode = 0o700
)

// WriteAtomic replaces the content of the file at path with data, and sets its mode to 0600 regardless of the umask.
// Missing directories are created with mode 0700; existing ones keep theirs. If path is a symbolic link, the file that
// it points to is replaced. When WriteAtomic returns nil the content has been synced to disk; when it fails, the old
// file is unchanged.
//
// There is one writer at a time: the caller holds Lock(path), or another lock that has the same effect.
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
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	return err
}

func replace(target string, data []byte) error {
	if err := removeTemp(target); err != nil {
		return err
	}
	temp, err := os.OpenFile(tempOf(target), os.O_CREATE|os.O_EXCL|os.O_WRONLY, privateFile)
	if err != nil {
		return err
	}
	err = fill(temp, data)
	if err == nil {
		err = os.Rename(temp.Name(), target)
	}
	if err != nil {
		return errors.Join(err, removeTemp(target))
	}
	return SyncDir(filepath.Dir(target))
}

// tempOf returns the name of target's new content until it is complete.
func tempOf(target string) string {
	return filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".tmp")
}

func removeTemp(target string) error {
	if err := os.Remove(tempOf(target)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
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

// Tidy removes what a killed writer of the file at path left behind, and restricts the file. It needs Lock(path), which
// it takes itself if locked is false.
func Tidy(path string, locked bool) error {
	target, err := resolve(path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Dir(target)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !locked {
		unlock, err := Lock(path)
		if err != nil {
			return err
		}
		defer unlock()
	}
	return errors.Join(removeTemp(target), Restrict(path))
}

// Resolved returns a path without symbolic links, or as it is if it leads to nothing.
func Resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
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

var errNotRegular = errors.New("is not a regular file")

// Limits of Read, in bytes: of files in which people or programs write a few lines, and of what Switchyard writes.
const (
	Small = 64 << 10
	Large = 16 << 20
)

// Read returns the content of the regular file at path, which may have at most so many bytes. Anything else is an
// error, without waiting: a pipe may never have a writer, and a device may never end.
func Read(path string, most int64) ([]byte, error) {
	data, _, err := ReadInfo(path, most)
	return data, err
}

// ReadText is Read without the byte-order mark that some editors write in front of a text.
func ReadText(path string, most int64) ([]byte, error) {
	data, err := Read(path, most)
	return bytes.TrimPrefix(data, []byte("\uFEFF")), err
}

// ReadInfo is Read, and also returns information about the file.
func ReadInfo(path string, most int64) ([]byte, fs.FileInfo, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > most {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: syscall.EFBIG}
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	return data, info, err
}

// ReadEnd is Read for the end of a file of any size.
func ReadEnd(path string, most int64) ([]byte, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-most), most))
}

func openRegular(path string) (*os.File, fs.FileInfo, error) {
	f, err := openRead(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		err = &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}
