package board

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
)

// stageSet holds stages by name, with those of their files that may have changed. nil means everything.
type stageSet map[string]fileSet

// fileSet holds the ids of files. nil means all files of a stage.
type fileSet map[string]bool

// maxFileSet is the number of changed files above which a stage is read as a whole.
const maxFileSet = 200

// add adds the file of a stage.
func (s stageSet) add(stage, id string) {
	files, known := s[stage]
	switch {
	case !known:
		s[stage] = fileSet{id: true}
	case files != nil && len(files) < maxFileSet:
		files[id] = true
	default:
		s[stage] = nil
	}
}

// scanner reads a work directory. It remembers what it has read, so that only changed files are read again.
type scanner struct {
	dir string
	// watch is called with each directory before it is read, so that no change is missed between reading and watching.
	watch  func(path string)
	stages map[string]*stage
	// inOrder holds the same stages in order; nil when the directory could not be read.
	inOrder []*stage
	scans   int

	entries []entry // of the stage being read; kept to reuse the memory, like content
	content []byte
}

// scan reads the files that changed, or the whole directory if those are not known, and returns all stages in
// order. An error means that none of them could be read.
func (s *scanner) scan(changed stageSet) ([]*stage, error) {
	if changed != nil && s.inOrder != nil {
		if stages, ok := s.scanSome(changed); ok {
			return stages, nil
		}
	}
	return s.scanAll()
}

// scanSome reads the files that changed. It returns false if one of their stages is unknown or gone.
func (s *scanner) scanSome(changed stageSet) (stages []*stage, ok bool) {
	for name := range changed {
		if s.stages[name] == nil {
			return nil, false
		}
	}
	s.scans++
	for _, st := range s.inOrder {
		files, due := changed[st.name]
		if st.skipped = !due; st.skipped {
			continue
		}
		if st.err = s.read(st, files); errors.Is(st.err, fs.ErrNotExist) {
			return nil, false
		}
	}
	return s.inOrder, true
}

func (s *scanner) scanAll() ([]*stage, error) {
	s.watch(s.dir)
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.inOrder = nil
		return nil, err
	}
	s.scans++
	s.inOrder = []*stage{}
	for _, entry := range entries {
		if !isStage(entry) {
			continue
		}
		st := s.stages[entry.Name()]
		if st == nil {
			st = &stage{name: entry.Name(), known: map[string]*file{}}
		}
		if st.err = s.read(st, nil); errors.Is(st.err, fs.ErrNotExist) {
			continue // it was removed meanwhile
		}
		st.scan, st.skipped = s.scans, false
		s.stages[st.name] = st
		s.inOrder = append(s.inOrder, st)
	}
	maps.DeleteFunc(s.stages, func(_ string, st *stage) bool { return st.scan != s.scans })
	slices.SortFunc(s.inOrder, func(a, b *stage) int { return compareNumbered(a.name, b.name) })
	return s.inOrder, nil
}
