package board

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// stageName matches the name of a stage's directory: digits, "_", a word in any script, which may contain hyphens.
var stageName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]+_[\pL\pN_-]+$`) })

// defaultStages are created in a work directory without stages.
var defaultStages = []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done", "6_archived"}

// makeStages creates the default stages in dir unless it already has a stage.
func makeStages(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || slices.ContainsFunc(entries, isStage) {
		return err
	}
	for _, name := range defaultStages {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// stage is a stage directory as a scan found it.
type stage struct {
	name  string
	files []*file // ordered by compareNumbered
	err   error   // why it could not be read; files are then from the last successful scan

	skipped bool // nothing seemed to have changed, so the last scan did not read it

	known map[string]*file // by id
	scan  int              // the last scan that found it
}

// entry is a file's entry in its directory.
type entry struct {
	id       string
	identity identity
}

// openStage opens a stage's directory, which must not be a symbolic link.
func openStage(path string) (*os.File, error) {
	return os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// read updates a stage, or some of its files. On an error the stage stays as it was.
func (s *scanner) read(st *stage, files fileSet) error {
	path := filepath.Join(s.dir, st.name)
	if files == nil {
		s.watch(path)
	}
	dir, err := openStage(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if files == nil || st.err != nil {
		files, err = nil, s.list(dir)
	} else {
		err = s.listSome(dir, files)
	}
	if err != nil {
		return err
	}
	for _, entry := range s.entries {
		f := st.known[entry.id]
		if f == nil {
			f = &file{id: entry.id}
			st.add(f)
		}
		f.scan = s.scans
		if !f.stable || f.identity != entry.identity {
			s.load(dir, f, entry.identity)
		}
	}
	if files == nil && len(s.entries) < len(st.files) {
		st.files = slices.DeleteFunc(st.files, func(f *file) bool { return f.scan != s.scans })
		maps.DeleteFunc(st.known, func(_ string, f *file) bool { return f.scan != s.scans })
	}
	for id := range files {
		if f := st.known[id]; f != nil && f.scan != s.scans {
			st.remove(f)
		}
	}
	if !slices.IsSortedFunc(st.files, compareFiles) {
		slices.SortFunc(st.files, compareFiles)
	}
	return nil
}

func compareFiles(a, b *file) int { return compareNumbered(a.id, b.id) }

// add adds a file without sorting.
func (st *stage) add(f *file) {
	st.known[f.id] = f
	st.files = append(st.files, f)
}

func (st *stage) remove(f *file) {
	delete(st.known, f.id)
	st.files = slices.DeleteFunc(st.files, func(other *file) bool { return other == f })
}

// list puts the entries of dir's work items into s.entries.
func (s *scanner) list(dir *os.File) error {
	names, err := dir.ReadDir(-1)
	if err != nil {
		return err
	}
	s.entries = s.entries[:0]
	for _, name := range names {
		if id, isItem := itemID(name.Name()); isItem && name.Type().IsRegular() {
			if err := s.stat(dir, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// listSome puts the entries of those files that exist in dir into s.entries.
func (s *scanner) listSome(dir *os.File, files fileSet) error {
	s.entries = s.entries[:0]
	for id := range files {
		if err := s.stat(dir, id); err != nil {
			return err
		}
	}
	return nil
}

// itemID returns the id of the work item in a file of that name, false if such a file is none.
func itemID(name string) (id string, isItem bool) {
	id, isItem = strings.CutSuffix(name, ".md")
	return id, isItem && !strings.HasPrefix(name, ".")
}

// stat adds the entry of a work item, if it exists in dir.
func (s *scanner) stat(dir *os.File, id string) error {
	var info unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), id+".md", &info, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil // it was removed meanwhile
	case err != nil:
		return err
	}
	s.entries = append(s.entries, entry{id, identityOf(&info)})
	return nil
}
