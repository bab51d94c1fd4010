package board

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/windows"
)

// Directories are identified by path here: Windows does not let one be replaced while it is open.

func identityOf(info fs.FileInfo) identity {
	modified := info.ModTime().UnixNano()
	return identity{0, info.Size(), modified, modified}
}

func identify(dir *os.File, name string) (identity, error) {
	info, err := os.Lstat(filepath.Join(dir.Name(), name))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return identity{}, nil
	}
	if err != nil {
		return identity{}, err
	}
	return identityOf(info), nil
}

func readRegular(dir *os.File, name string, most int64) (*storyFile, error) {
	info, err := os.Lstat(filepath.Join(dir.Name(), name))
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	file, err := os.Open(filepath.Join(dir.Name(), name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, most))
	return newStoryFile(content, storyFile{identity: identityOf(info), mode: info.Mode().Perm()}), err
}

func openStage(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

func createAt(dir *os.File, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir.Name(), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

func removeAt(dir *os.File, name string) error { return os.Remove(filepath.Join(dir.Name(), name)) }

func replaceAt(dir *os.File, name, newName string) error {
	return os.Rename(filepath.Join(dir.Name(), name), filepath.Join(dir.Name(), newName))
}

func exchangeAt(*os.File, string, string) error { return errors.ErrUnsupported }

func renameNew(from *os.File, name string, to *os.File, newName string) error {
	old, err := windows.UTF16PtrFromString(filepath.Join(from.Name(), name))
	if err != nil {
		return err
	}
	target, err := windows.UTF16PtrFromString(filepath.Join(to.Name(), newName))
	if err != nil {
		return err
	}
	return windows.MoveFileEx(old, target, windows.MOVEFILE_WRITE_THROUGH) // without MOVEFILE_REPLACE_EXISTING
}

// syncDir does nothing: directories cannot be synced here, and renames are written through.
func syncDir(*os.File) error { return nil }
