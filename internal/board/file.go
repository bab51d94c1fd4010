package board

import (
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A file that changes twice within a tick of its file system's clock has the same times after both changes. Kernels
// advance that clock at least every 10 ms; file systems without fractions of a second have ticks of up to two.
const (
	tick       = 20 * time.Millisecond
	coarseTick = 2 * time.Second
)

// file is a work item's file.
type file struct {
	id       string
	modified time.Time
	facts    facts

	identity identity
	stable   bool // any change since it was read shows in its identity
	scan     int  // the last scan that found it
}

// identity changes with a file's content.
type identity struct {
	inode    uint64
	size     int64
	modified unix.Timespec
	changed  unix.Timespec // unlike modified, it cannot be set
}

func identityOf(info *unix.Stat_t) identity {
	return identity{info.Ino, info.Size, info.Mtim, info.Ctim}
}

// tick returns the time within which two contents may have the same identity.
func (i identity) tick() time.Duration {
	if i.changed.Nsec == 0 && i.modified.Nsec == 0 {
		return coarseTick
	}
	return tick
}

// load reads a file that is new or may have changed.
func (s *scanner) load(dir *os.File, f *file, now identity) {
	f.identity = now
	f.modified = time.Unix(now.modified.Unix())
	f.stable = time.Since(time.Unix(now.changed.Unix())) >= now.tick()
	content, err := s.contentOf(dir, f.id+".md", int(min(now.size, maxFile)))
	switch {
	case err != nil:
		f.facts, f.stable = facts{state: unreadable}, false
	case now.size > maxFile:
		f.facts = facts{name: firstHeading(splitDocument(content).body)}
	default:
		f.facts = parse(content)
	}
}

// contentOf returns the first size bytes of a regular file, valid until the next call.
func (s *scanner) contentOf(dir *os.File, name string, size int) ([]byte, error) {
	fd, err := openFile(dir, name)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	s.content, err = readInto(s.content, fd, size)
	return s.content, err
}

// openFile opens a file in dir for reading. If the file has been replaced by a symbolic link or a pipe, it neither
// follows the one nor waits on the other.
func openFile(dir *os.File, name string) (fd int, err error) {
	return unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}

// readInto reads up to size bytes from fd, into buffer if it has room for them.
func readInto(buffer []byte, fd, size int) ([]byte, error) {
	buffer = slices.Grow(buffer[:0], size)[:size]
	for read := 0; read < size; {
		n, err := unix.Read(fd, buffer[read:])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return buffer[:read], nil // it was truncated meanwhile: the next scan sees another identity
		}
		read += n
	}
	return buffer, nil
}
