package board

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"switchyard/internal/domain"
)

// units is a board in files other than those of stage directories.
type units struct {
	dir    string
	watch  func(string)
	open   func(*tree) (*rules, error)
	log    *slog.Logger
	notes  notes
	sweeps bool // the first scan removes the temporary files that a killed process left
	files  map[string]identity
	units  map[string]*unit
	order  []string             // the names of units, nil if they must be sorted, which takes long
	waits  map[string]time.Time // since when it has been unclear how many stories have these ids
	others []string             // stages found that the rules do not have
	stages []*stage
	again  time.Time             // as due
	index  atomic.Pointer[index] // for readers
}

// index says where the stories are. It is immutable.
type index struct {
	rules  *rules
	stages []stageRule
	places map[string]place   // by story
	copies map[string][]place // by ids that several stories have, in their order
	shared map[string]bool    // titles of several stories, if these are not used as names
}

// unit returns the name of a story's unit, "" if it is in none.
func (x *index) unit(story string) string {
	if p, is := x.places[story]; is {
		return p.unit.name
	}
	return ""
}

func (s *units) due() time.Time { return s.again }

func (s *units) touch(changed fileSet, path string) bool {
	name, err := filepath.Rel(s.dir, path)
	if err != nil {
		return false
	}
	name = filepath.ToSlash(name)
	if strings.HasPrefix(filepath.Base(name), tempPrefix) {
		return true
	}
	rules := s.index.Load().rules
	if _, known := s.files[name]; known {
		changed.add(rules.unit(name), name)
		return !rules.whole
	}
	isPart := func(board string) bool { return strings.HasPrefix(board+"/", name+"/") }
	// Nothing else that comes and goes at the top of a repository is part of the board.
	return !strings.Contains(name, "/") && !slices.ContainsFunc(rules.paths, isPart)
}

func (s *units) scan(changed fileSet) ([]*stage, error) {
	tree, err := openTree(s.dir)
	if err != nil {
		return nil, err
	}
	defer tree.close()
	s.again = time.Time{}
	var rules *rules
	if known := s.index.Load(); known != nil {
		rules = known.rules
	}
	settled := false
	dirty := map[string]bool{}
	if changed == nil || rules == nil {
		if rules, settled, err = s.compare(tree, rules, dirty); err != nil {
			return nil, err
		}
	}
	for name, paths := range changed {
		for path := range paths {
			now, err := tree.identify(path)
			if err != nil {
				return nil, err
			}
			if s.files[path] = now; now == (identity{}) {
				delete(s.files, path)
			}
		}
		dirty[name] = true
	}
	if rules.source != nil {
		fresh := false
		tree.content, fresh, s.again, err = rules.source(len(dirty) > 0)
		if err != nil {
			return nil, err
		}
		clear(dirty) // all files are of one unit
		if fresh {
			dirty[rules.unit(rules.paths[0]+"/x")] = true
		}
	}
	for name, u := range s.units {
		if !u.torn.IsZero() || !u.stable && changed == nil {
			dirty[name] = true
		}
	}
	delete(dirty, "")
	for name := range dirty {
		was, known := s.units[name]
		now := cmp.Or(was, &unit{name: name}).load(s, rules, tree, settled)
		if s.units[name] = now; now == nil {
			delete(s.units, name)
		}
		if known != (now != nil) {
			s.order = nil
		}
	}
	s.build(rules, settled)
	return s.stages, nil
}

// compare finds the units whose files have changed, all if the configuration has. It returns the rules, and whether
// they differ from the known ones.
func (s *units) compare(tree *tree, known *rules, dirty map[string]bool) (rules *rules, settled bool, err error) {
	rules, files, err := s.readAll(tree, known)
	if err != nil {
		return nil, false, err
	}
	settled = known != nil && known.config != rules.config
	if s.sweeps {
		s.sweeps = false
		for _, name := range tree.temps {
			_ = tree.root.Remove(name) // leaving it does no harm
		}
	}
	for path, now := range files {
		if s.files[path] != now || settled {
			dirty[rules.unit(path)] = true
		}
	}
	for path := range s.files {
		if _, exists := files[path]; !exists {
			dirty[rules.unit(path)] = true
		}
	}
	s.files = files
	return rules, settled, nil
}

// readAll returns the rules, the known ones while their file is being written, and the board's files.
func (s *units) readAll(tree *tree, known *rules) (rules *rules, files map[string]identity, err error) {
	for range 3 {
		rules = known
		if known == nil || known.source == nil {
			now, err := s.open(tree)
			if err != nil && !errors.Is(err, errTorn) {
				return nil, nil, err
			}
			if known == nil || err == nil {
				rules = now
			}
		}
		if files, err = tree.walk(rules, s.watch); err != nil || !tree.hasChanged() {
			return rules, files, err
		}
	}
	return rules, files, nil
}

func (s *units) rescanAt(at time.Time) {
	if s.again.IsZero() || at.Before(s.again) {
		s.again = at
	}
}

// build puts the stories into stages.
func (s *units) build(rules *rules, settled bool) {
	var last map[string]string
	ruled := map[string]int{} // by key, and folded key
	stages := slices.Clone(rules.stages)
	for _, key := range s.others {
		stages = append(stages, stageRule{key: key})
	}
	for i, rule := range stages {
		if _, twice := ruled[fold(rule.key)]; !twice {
			ruled[fold(rule.key)] = i
		}
	}
	next := &index{rules: rules}
	lists := make([][]*file, len(stages))
	var dependents []dependent
	if rules.titles {
		next.shared = s.sharedTitles()
	}
	if s.order == nil {
		s.order = slices.SortedFunc(maps.Keys(s.units), compareNatural)
	}
	s.number(next, s.order, settled)
	for _, name := range s.order {
		u := s.units[name]
		for i := range u.stories {
			story := &u.stories[i]
			f := story.file
			if story.hidden {
				continue
			}
			if story.key == "" { // where it was
				story.key = cmp.Or(rules.unseen, stages[0].key)
				if f.story == nil {
					if last == nil {
						last = s.lastKeys()
					}
					story.key = cmp.Or(last[f.id], story.key)
				}
			}
			at, exists := ruled[story.key]
			if !exists {
				if at, exists = ruled[fold(story.key)]; !exists {
					at = len(stages)
					s.others = append(s.others, story.key)
					stages, lists = append(stages, stageRule{key: story.key}), append(lists, nil)
				}
				ruled[story.key], ruled[fold(story.key)] = at, at
			}
			f.facts.name = next.name(story.id, story.title)
			f.facts.blocked = cmp.Or(story.blocked, s.notes.list[f.id])
			if lists[at] = append(lists[at], f); len(story.depends) > 0 {
				dependents = append(dependents, dependent{story, at})
			}
		}
	}
	next.stages = stages
	s.stages = make([]*stage, len(stages))
	for i, rule := range stages {
		s.stages[i] = &stage{
			name: rule.name(i), label: cmp.Or(rule.label, rule.key), fixed: cmp.Or(rule.refusal, rules.refusal),
			other: i >= len(rules.stages), settled: settled, files: lists[i],
		}
	}
	s.link(next, dependents)
	s.index.Store(next)
}

func (s *units) lastKeys() map[string]string {
	keys := map[string]string{}
	for i, st := range s.stages {
		for _, f := range st.files {
			keys[f.id] = s.index.Load().stages[i].key
		}
	}
	return keys
}

func (x *index) stage(key string) int {
	return slices.IndexFunc(x.stages, func(r stageRule) bool { return fold(r.key) == fold(key) })
}

func (s *units) create(string, string, string) (id string, changed fileSet, err error) {
	return "", nil, domain.Errorf(domain.Invalid, "stories of this board are added by its own tool, not by Switchyard")
}

// past follows the same rules as the present, except for files that are being written.
func (s *units) past() Past {
	known := s.index.Load()
	var last string // unit
	var entries []entry
	return Past{
		Paths: known.rules.paths, Config: known.rules.config, Unit: known.rules.unit,
		Now: known.unit, named: known.rules.isNamed(),
		Stories: func(unit string, files Files) map[string]string {
			if unit != last {
				last, entries = unit, nil
			}
			found, err := known.rules.stories(unit, decodedFiles{files}, entries)
			if err == nil {
				entries = found
			}
			stages := make(map[string]string, len(found))
			for _, e := range found {
				if i := known.stage(e.stage); i >= 0 && stages[e.id] == "" {
					stages[e.id] = known.stages[i].name(i)
				}
			}
			return stages
		},
	}
}
