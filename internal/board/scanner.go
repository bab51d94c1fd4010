package board

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
)

// scanner reads a work directory. It remembers what it read, so that only changed files are read again.
type scanner struct {
	dir string
	// watch is called with each directory before it is read, so that no change falls between reading and watching.
	watch  func(path string)
	stages map[string]*stage
	scans  int

	entries []entry // of the stage that is being read; kept for its memory, as content is
	content []byte
}

// scan reads the whole directory and returns its stages in their order.
// An error means that nothing was found out about any of them.
func (s *scanner) scan() ([]*stage, error) {
	s.watch(s.dir)
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	s.scans++
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
		st.scan = s.scans
		s.stages[st.name] = st
		found = append(found, st)
	}
	maps.DeleteFunc(s.stages, func(_ string, st *stage) bool { return st.scan != s.scans })
	slices.SortFunc(found, func(a, b *stage) int { return compareNumbered(a.name, b.name) })
	return found, nil
}
