package board

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A file that changed twice within a tick of its file system's clock has the same times before and after. Kernels
// stamp files every 10 ms at least; a file system that keeps no fractions of a second counts in ticks of up to two.
const (
	tick       = 20 * time.Millisecond
	coarseTick = 2 * time.Second
)

// scanner looks at a work directory. It remembers what it read, so that only changed files are read again.
type scanner struct {
	dir string
	// watch is called with each directory before it is read, so that no change falls between reading and watching.
	watch  func(path string)
	stages map[string]*stage
	looks  int

	entries []entry // of the stage that is being read; kept for its memory, as content is
	content []byte
}

// stage is a stage directory as a look found it.
type stage struct {
	name  string
	files []*file // ordered by the number that their ids begin with
	err   error   // why it could not be read; files are then those of the last look that could

	known map[string]*file // by id
	look  int              // the last look that found it
}

// file is a work item's file.
type file struct {
	id       string
	modified time.Time
	facts    facts

	identity identity
	settled  bool // a change since it was read would show in its identity
	look     int  // the last look that found it
}

// entry is what a directory says of a file.
type entry struct {
	id       string
	identity identity
}

// identity changes with a file's content.
type identity struct {
	inode    uint64
	size     int64
	modified unix.Timespec
	changed  unix.Timespec // unlike modified, nobody can set it
}

// tick is the time within which two contents may have the same identity.
func (i identity) tick() time.Duration {
	if i.changed.Nsec == 0 && i.modified.Nsec == 0 {
		return coarseTick
	}
	return tick
}

// scan looks at the whole directory and returns its stages in their order.
// An error means that nothing was found out about any of them.
func (s *scanner) scan() ([]*stage, error) {
	s.watch(s.dir)
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	s.looks++
	var found []*stage
	for _, entry := range entries {
		if !entry.IsDir() || !stageName.MatchString(entry.Name()) {
			continue
		}
		st := s.stages[entry.Name()]
		if st == nil {
			st = &stage{name: entry.Name(), known: map[string]*file{}}
		}
		if st.err = s.read(st); errors.Is(st.err, fs.ErrNotExist) {
			continue // it went meanwhile
		}
		st.look = s.looks
		s.stages[st.name] = st
		found = append(found, st)
	}
	maps.DeleteFunc(s.stages, func(_ string, st *stage) bool { return st.look != s.looks })
	slices.SortFunc(found, func(a, b *stage) int { return compareNumbered(a.name, b.name) })
	return found, nil
}

// read brings a stage up to date. On an error the stage stays as it was.
func (s *scanner) read(st *stage) error {
	path := filepath.Join(s.dir, st.name)
	s.watch(path)
	dir, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := s.list(dir); err != nil {
		return err
	}
	added := false
	for _, entry := range s.entries {
		f := st.known[entry.id]
		if f == nil {
			f = &file{id: entry.id}
			st.known[f.id] = f
			st.files = append(st.files, f)
			added = true
		}
		f.look = s.looks
		if !f.settled || f.identity != entry.identity {
			s.load(dir, f, entry.identity)
		}
	}
	if len(s.entries) < len(st.files) {
		st.files = slices.DeleteFunc(st.files, func(f *file) bool { return f.look != s.looks })
		maps.DeleteFunc(st.known, func(_ string, f *file) bool { return f.look != s.looks })
	}
	if added {
		slices.SortFunc(st.files, func(a, b *file) int { return compareNumbered(a.id, b.id) })
	}
	return nil
}

// list puts what dir says of its work items into s.entries.
func (s *scanner) list(dir *os.File) error {
	names, err := dir.ReadDir(-1)
	if err != nil {
		return err
	}
	s.entries = s.entries[:0]
	for _, name := range names {
		id, isItem := strings.CutSuffix(name.Name(), ".md")
		if !isItem || strings.HasPrefix(name.Name(), ".") || !name.Type().IsRegular() {
			continue
		}
		var info unix.Stat_t
		err := unix.Fstatat(int(dir.Fd()), name.Name(), &info, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode&unix.S_IFMT != unix.S_IFREG {
			continue // it went meanwhile
		}
		if err != nil {
			return err
		}
		s.entries = append(s.entries, entry{id, identity{info.Ino, info.Size, info.Mtim, info.Ctim}})
	}
	return nil
}

// load reads a file that is new or may have changed.
func (s *scanner) load(dir *os.File, f *file, now identity) {
	f.identity = now
	f.modified = time.Unix(now.modified.Unix())
	f.settled = time.Since(time.Unix(now.changed.Unix())) >= now.tick()
	if now.size > maxFile {
		f.facts = facts{}
		return
	}
	content, err := s.contentOf(dir, f.id+".md", int(now.size))
	if err != nil {
		f.facts, f.settled = facts{state: unreadable}, false
		return
	}
	f.facts = parse(content)
}

// contentOf reads the first size bytes of a regular file. It neither follows a symbolic link nor waits on a pipe,
// should the file have become one. The content is valid until the next call.
func (s *scanner) contentOf(dir *os.File, name string, size int) ([]byte, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	s.content = slices.Grow(s.content[:0], size)[:size]
	for read := 0; read < size; {
		n, err := unix.Read(fd, s.content[read:])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return s.content[:read], nil // it was cut meanwhile: its identity is another at the next look
		}
		read += n
	}
	return s.content, nil
}
