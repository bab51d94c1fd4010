//go:build unix

package board

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

func identityOf(info *unix.Stat_t) identity {
	return identity{info.Ino, info.Size, info.Mtim.Nano(), info.Ctim.Nano()}
}

// identify returns the identity of a regular file in dir, zero if there is none of that name.
func identify(dir *os.File, name string) (identity, error) {
	var info unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &info, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode&unix.S_IFMT != unix.S_IFREG {
		return identity{}, nil
	}
	return identityOf(&info), err
}

// readRegular reads up to most bytes of a regular file. Its error is fs.ErrNotExist if there is none in dir. It neither
// follows a symbolic link that has replaced the file, nor waits on a pipe.
func readRegular(dir *os.File, name string, most int64) (*storyFile, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return nil, err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fs.ErrNotExist
	}
	content := make([]byte, min(info.Size, most))
	for read := 0; read < len(content); {
		n, err := unix.Read(fd, content[read:])
		if err != nil {
			return nil, err
		}
		if read += n; n == 0 { // it was truncated meanwhile: the next scan sees another identity
			content = content[:read]
		}
	}
	return newStoryFile(content, storyFile{
		identity: identityOf(&info), mode: fs.FileMode(info.Mode & 0o777), owner: int(info.Uid), group: int(info.Gid),
	}), nil
}

// openStage opens a stage's directory, which must not be a symbolic link.
func openStage(path string) (*os.File, error) {
	return os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// createAt creates a file in dir, which must not exist yet.
func createAt(dir *os.File, name string) (*os.File, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(int(dir.Fd()), name, flags, 0o666)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func removeAt(dir *os.File, name string) error { return unix.Unlinkat(int(dir.Fd()), name, 0) }

func replaceAt(dir *os.File, name, newName string) error {
	return unix.Renameat(int(dir.Fd()), name, int(dir.Fd()), newName)
}

// renameNew renames a file without overwriting another: its error is fs.ErrExist if the new name is taken. If the file
// system cannot do this in one step, the file has both names for a moment.
func renameNew(from *os.File, name string, to *os.File, newName string) error {
	err := renameNoReplace(from, name, to, newName)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	return linkAndUnlink(from, name, to, newName)
}

func linkAndUnlink(from *os.File, name string, to *os.File, newName string) error {
	if err := unix.Linkat(int(from.Fd()), name, int(to.Fd()), newName, 0); err != nil {
		return err
	}
	return removeAt(from, name)
}

func syncDir(dir *os.File) error { return dir.Sync() }
