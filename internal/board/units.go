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

// units is a board in other files than those of stage directories.
type units struct {
	dir    string
	watch  func(string)
	open   func(*tree) (*rules, error)
	log    *slog.Logger
	notes  notes
	files  map[string]identity
	units  map[string]*unit
	order  []string // of units
	others []string // stages met that the rules do not have
	stages []*stage
	again  time.Time             // as due
	index  atomic.Pointer[index] // for readers
}

// index says where the stories are. It is immutable.
type index struct {
	rules  *rules
	stages []stageRule
	units  map[string]string // by story
}

// unit is what was last read of one.
type unit struct {
	files  []*file
	stages []string // the files' stages
	blocks []string // why the files themselves say that they are blocked
	stable bool
	torn   time.Time // when it was first found torn
	fault  string
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
	if _, known := s.files[name]; !known {
		return false
	}
	changed.add(s.index.Load().rules.unit(name), name)
	return !s.index.Load().rules.whole
}

func (s *units) scan(changed fileSet) ([]*stage, error) {
	tree, err := openTree(s.dir)
	if err != nil {
		return nil, err
	}
	defer tree.close()
	known := s.index.Load()
	settled := false
	dirty := map[string]bool{}
	if changed == nil || known == nil {
		var rules *rules
		if known != nil && known.rules.source != nil {
			rules = known.rules
		} else if rules, err = s.open(tree); errors.Is(err, errTorn) {
			if known != nil {
				rules = known.rules
			}
		} else if err != nil {
			return nil, err
		}
		settled = known != nil && known.rules.config != rules.config
		known = &index{rules: rules}
		files, err := tree.walk(rules, s.watch)
		if err != nil {
			return nil, err
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
	if source := known.rules.source; source != nil {
		fresh := false
		tree.content, fresh, s.again, err = source(len(dirty) > 0)
		if err != nil {
			return nil, err
		}
		for name := range dirty {
			dirty[name] = fresh
		}
		if fresh {
			dirty[known.rules.unit(known.rules.paths[0]+"/x")] = true
		}
	}
	added := false
	for name, u := range s.units {
		dirty[name] = dirty[name] || !u.torn.IsZero() || !u.stable && changed == nil
	}
	delete(dirty, "")
	for name, is := range dirty {
		if !is {
			continue
		}
		if s.units[name] == nil {
			s.units[name], added = &unit{}, true
		}
		s.load(s.units[name], name, known.rules, tree)
	}
	if added || len(s.order) != len(s.units) {
		s.order = slices.SortedFunc(maps.Keys(s.units), compareNatural)
	}
	s.build(known, settled)
	return s.stages, nil
}

// load reads the stories of a unit.
func (s *units) load(u *unit, name string, rules *rules, tree *tree) {
	now := time.Now()
	entries, err := rules.stories(name, tree)
	switch {
	case errors.Is(err, errTorn) && len(u.files) > 0 && (u.torn.IsZero() || now.Sub(u.torn) < grace || len(entries) == 0):
		if u.torn.IsZero() {
			u.torn = now
		}
		state := torn
		if now.Sub(u.torn) >= grace { // what was there counts for as long as nothing else does
			state = whole
		}
		for i, f := range u.files {
			f := *f
			f.facts.state, u.files[i] = state, &f
		}
		return
	case err != nil && !errors.Is(err, errTorn):
		if u.fault != err.Error() {
			s.log.Warn("board: cannot read "+name, "error", err)
		}
		u.fault = err.Error()
		return
	case len(entries) == 0:
		delete(s.units, name)
		return
	}
	*u = unit{stable: tree.settled(now)}
	for _, e := range entries {
		r := e.record()
		f := &file{id: e.id, modified: cmp.Or(r.modified, tree.modified(r.path), now), facts: facts{
			name: limit(cmp.Or(r.name, words(e.id))), criteria: r.criteria(),
			version: r.hash(e.stage),
		}}
		if r.blocked != "" {
			f.facts.blocked = domain.CutReason(r.blocked)
		}
		u.files, u.stages, u.blocks = append(u.files, f), append(u.stages, e.stage), append(u.blocks, f.facts.blocked)
	}
}

// build puts the stories into stages. Of a story that is in several units the first counts.
func (s *units) build(known *index, settled bool) {
	var last map[string]string
	ruled := map[string]int{}
	stages := slices.Clone(known.rules.stages)
	for _, key := range s.others {
		stages = append(stages, stageRule{key: key})
	}
	for i, rule := range stages {
		if _, twice := ruled[fold(rule.key)]; !twice {
			ruled[fold(rule.key)] = i
		}
	}
	next := &index{rules: known.rules, units: make(map[string]string, len(s.files))}
	lists := make([][]*file, len(stages))
	for _, name := range s.order {
		u := s.units[name]
		if u == nil {
			continue
		}
		for i, f := range u.files {
			if _, twice := next.units[f.id]; twice {
				continue
			}
			next.units[f.id] = name
			key := u.stages[i]
			if key == "" { // where it was
				key = stages[0].key
				if f.story == nil {
					if last == nil {
						last = s.lastKeys()
					}
					key = cmp.Or(last[f.id], key)
				}
				u.stages[i] = key
			}
			at, exists := ruled[fold(key)]
			if !exists {
				at = len(stages)
				ruled[fold(key)] = at
				s.others = append(s.others, key)
				stages, lists = append(stages, stageRule{key: key}), append(lists, nil)
			}
			f.facts.blocked = cmp.Or(u.blocks[i], s.notes.blocked(f.id))
			lists[at] = append(lists[at], f)
		}
	}
	next.stages = stages
	s.stages = make([]*stage, len(stages))
	for i, rule := range stages {
		s.stages[i] = &stage{
			name: rule.name(i), label: cmp.Or(rule.label, rule.key), fixed: cmp.Or(rule.refusal, known.rules.refusal),
			settled: settled, files: lists[i],
		}
	}
	s.index.Store(next)
}

// lastKeys returns the keys of the stages that the stories were last in.
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

// past follows the same rules as the present, but for files that are being written.
func (s *units) past() Past {
	known := s.index.Load()
	return Past{
		Paths: known.rules.paths, Config: known.rules.config, Unit: known.rules.unit,
		Stories: func(unit string, files Files) map[string]string {
			entries, _ := known.rules.stories(unit, files)
			stages := make(map[string]string, len(entries))
			for _, e := range entries {
				if i := known.stage(e.stage); i >= 0 && stages[e.id] == "" {
					stages[e.id] = known.stages[i].name(i)
				}
			}
			return stages
		},
	}
}
