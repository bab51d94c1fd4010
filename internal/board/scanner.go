package board

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"switchyard/internal/domain"
)

// fileSet holds the ids of files by stage or, in other layouts, the paths of files by unit. nil means everything.
type fileSet map[string]map[string]bool

func (s fileSet) add(group, name string) {
	if s[group] == nil {
		s[group] = map[string]bool{}
	}
	s[group][name] = true
}

func (s *scanner) read(story Story, stage string) (*Details, error) {
	dir, err := openStage(filepath.Join(s.dir, stage))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	file, err := readRegular(dir, story.ID+".md", maxFile)
	if number, ok := errors.AsType[syscall.Errno](err); ok && !errors.Is(err, fs.ErrNotExist) {
		return nil, domain.WrapError(domain.Unavailable, err, "the story's file cannot be read: "+number.Error())
	}
	if err != nil {
		return nil, err
	}
	return newDetails(story, stage, file), nil
}

func (s *scanner) reader() (read func(Story, string) (*Details, error), done func(), err error) {
	return s.read, func() {}, nil
}

func (s *scanner) past() Past { return pastOfStages }

func (s *scanner) due() time.Time { return time.Time{} }

func (s *scanner) touch(changed fileSet, path string) bool {
	stage := filepath.Dir(path)
	if filepath.Dir(stage) != s.dir {
		return false
	}
	if id, isItem := itemID(filepath.Base(path)); isItem {
		changed.add(filepath.Base(stage), id)
	}
	return true
}

// scanner reads a work directory. It remembers what it has read, so that only changed files are read again.
type scanner struct {
	dir string
	// watch is called with each directory before it is read, so that no change is missed between reading and watching.
	watch  func(path string)
	stages []*stage // of the last scan, in order
	// passes, if not nil, reports whether a story's file in a stage does not matter: then it is not read.
	passes func(stage, id string) bool
}

// stage is a stage directory as a scan found it.
type stage struct {
	name  string
	label string // the board's own word, "" if it has none
	fixed string // as in Stage; likewise other
	other bool
	// settled says that the stages are not those of before: what is here now is no news.
	settled bool
	files   []*file          // ordered by compareNumbered
	known   map[string]*file // files by id
	err     error            // why it could not be read; files are then from the last successful scan
}

type file struct {
	id       string
	modified time.Time
	facts    facts
	story    *story // the tracker's
	silent   bool   // its differences from before are not news: see number

	identity identity
	stable   bool // any change since it was read shows in its identity
}

// scan reads the files that changed, or the whole directory if those are not known, and returns all stages in order. An
// error means that none of them could be read.
func (s *scanner) scan(changed fileSet) ([]*stage, error) {
	everything := changed == nil
	for name, ids := range changed {
		st := s.stage(name)
		if st != nil {
			st.err = s.readStage(st, ids)
		}
		everything = everything || st == nil || errors.Is(st.err, fs.ErrNotExist)
	}
	if !everything {
		return s.stages, nil
	}
	s.watch(s.dir)
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var stages []*stage
	for _, entry := range entries {
		if !isStage(entry) {
			continue
		}
		st := s.stage(entry.Name())
		if st == nil {
			st = &stage{name: entry.Name(), known: map[string]*file{}}
		}
		if st.err = s.readStage(st, nil); !errors.Is(st.err, fs.ErrNotExist) { // otherwise it was removed meanwhile
			stages = append(stages, st)
		}
	}
	slices.SortFunc(stages, func(a, b *stage) int { return compareNumbered(a.name, b.name) })
	s.stages = stages
	return stages, nil
}

// stage returns the stage that the last scan found under that name, nil for none.
func (s *scanner) stage(name string) *stage {
	i := slices.IndexFunc(s.stages, func(st *stage) bool { return st.name == name })
	if i < 0 {
		return nil
	}
	return s.stages[i]
}

// readStage updates the files of a stage that have these ids, nil for all. On an error the stage keeps its files.
func (s *scanner) readStage(st *stage, ids map[string]bool) error {
	path := filepath.Join(s.dir, st.name)
	if ids == nil {
		s.watch(path)
	}
	dir, err := openStage(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if ids == nil || st.err != nil {
		names, err := dir.Readdirnames(-1)
		if err != nil {
			return err
		}
		ids = make(map[string]bool, len(names))
		for id := range st.known {
			ids[id] = true // it may be gone
		}
		for _, name := range names {
			if name == ".git" { // another work tree
				return fs.ErrNotExist
			}
			if id, isItem := itemID(name); isItem {
				ids[id] = true
			}
		}
	}
	found := make(map[string]identity, len(ids)) // zero if it is not a file
	for id := range ids {
		if found[id], err = identify(dir, id+".md"); err != nil {
			return err
		}
	}
	changed := false // which files there are
	for id, now := range found {
		f := st.known[id]
		if now == (identity{}) {
			changed = changed || f != nil
			delete(st.known, id)
			continue
		}
		if f == nil {
			f = &file{id: id}
			st.known[id], changed = f, true
		}
		switch {
		case s.passes != nil && s.passes(st.name, id):
			f.modified, f.stable = time.Unix(0, now.modified), false
		case !f.stable || f.identity != now:
			f.load(dir, st.name, now)
		}
	}
	if changed {
		st.files = slices.SortedFunc(maps.Values(st.known), func(a, b *file) int { return compareNumbered(a.id, b.id) })
	}
	return nil
}

func (f *file) load(dir *os.File, stage string, now identity) {
	f.identity = now
	f.modified = time.Unix(0, now.modified)
	f.stable = time.Since(time.Unix(0, now.changed)) >= now.tick()
	read, err := readRegular(dir, f.id+".md", maxFile)
	switch {
	case err != nil:
		f.facts, f.stable = facts{state: unreadable, fault: reasonOf(err)}, false
		return
	case read.tooLarge():
		f.facts = facts{
			name: heading(splitDocument(read.content).body, anyLevel), state: torn, fault: errFileTooLong.Error(),
		}
	default:
		f.facts = parse(read.content)
	}
	f.facts.version, f.facts.criteria = read.version(stage), countTasks(splitDocument(read.content).tasks())
}

// itemID returns the id of the work item in a file of that name, false if it is not one.
func itemID(name string) (id string, isItem bool) {
	id, isItem = strings.CutSuffix(name, ".md")
	return id, isItem && !strings.HasPrefix(name, ".")
}
