package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

var errNotRegular = errors.New("is not a regular file")

// Read returns the content of the regular file at path. Anything else is an error, without waiting: a pipe may never
// have a writer, and a device may never end.
func Read(path string) ([]byte, error) {
	data, _, err := ReadInfo(path)
	return data, err
}

// ReadInfo is Read, and also returns information about the file.
func ReadInfo(path string) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		err = &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(f)
	return data, info, err
}
