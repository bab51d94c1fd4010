package board

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// unitCache has the entries of units by id, those of one id in their unit's order, or why there are none.
type unitCache map[*unit]struct {
	entries map[string][]entry
	err     error
}

// find returns a story's entry. Seen has the entries of units already read, to which it adds those of the story's.
func (s *units) find(tree *tree, seen unitCache, id string) (e entry, rule int, err error) {
	known := s.index.Load()
	tree.kept = map[string]*storyFile{}
	p, is := known.places[id]
	if !is {
		return e, 0, fs.ErrNotExist
	}
	unit, read := seen[p.unit]
	if !read {
		unit.entries, unit.err = s.entriesOf(known, p.unit, tree)
		seen[p.unit] = unit
	}
	if unit.err != nil {
		return e, 0, unit.err
	}
	entries, nth := unit.entries[p.story().id], 0
	if len(entries) > 1 {
		nth = p.nth()
	}
	if nth >= len(entries) {
		return e, 0, fs.ErrNotExist
	}
	return entries[nth], known.stage(entries[nth].stage), nil
}

func (s *units) entriesOf(known *index, unit *unit, tree *tree) (byID map[string][]entry, err error) {
	if known.rules.source != nil {
		if tree.content, _, _, err = known.rules.source(false); err != nil {
			return nil, err
		}
	}
	entries, err := known.rules.stories(unit.name, tree, unit.entries)
	if err != nil && (!errors.Is(err, errTorn) || len(entries) == 0) {
		return nil, newFaultyFile(unit.path(), err)
	}
	byID = make(map[string][]entry, len(entries))
	for _, e := range entries {
		byID[e.id] = append(byID[e.id], e)
	}
	return byID, nil
}

func (s *units) read(story Story, stage string) (*Details, error) {
	read, done, err := s.reader()
	if err != nil {
		return nil, err
	}
	defer done()
	return read(story, stage)
}

func (s *units) reader() (read func(Story, string) (*Details, error), done func(), err error) {
	tree, err := openTree(s.dir)
	if err != nil {
		return nil, nil, err
	}
	seen := unitCache{}
	return func(story Story, stage string) (*Details, error) { return s.readIn(tree, seen, story, stage) }, tree.close, nil
}

func (s *units) readIn(tree *tree, seen unitCache, story Story, stage string) (*Details, error) {
	e, rule, err := s.find(tree, seen, story.ID)
	if bad, is := errors.AsType[*faultyFile](err); is {
		story.Fault = bad.reason
		return &Details{
			Story: story, Stage: stage, Path: bad.path, FrontMatter: json.RawMessage("{}"), ReadOnly: bad.reason,
		}, nil
	}
	if err != nil {
		return nil, err
	}
	r, known := e.record(), s.index.Load()
	if rule >= 0 {
		stage = known.stages[rule].name(rule)
	} else {
		rule = slices.IndexFunc(known.stages, func(r stageRule) bool {
			return strings.HasSuffix(stage, "_"+stageSlug(r.key))
		})
	}
	details := &Details{Story: story, Stage: stage, Path: r.path, FrontMatter: r.front, Tasks: r.tasks}
	if rule >= 0 {
		details.Label = cmp.Or(known.stages[rule].label, known.stages[rule].key)
	}
	if details.Fault, details.ReadOnly = "", ""; r.fault != nil {
		details.Fault, details.ReadOnly = r.fault.reason, r.fault.reason
	}
	if file := tree.kept[cmp.Or(r.status, r.path)]; file != nil && file.foreign {
		details.ReadOnly = errForeign.Message
	}
	if r.front == nil {
		details.FrontMatter = json.RawMessage("{}")
	}
	details.Name, details.Version, details.Criteria = known.name(e.id, limit(r.name)), r.hash(e.stage), r.criteria()
	if r.blocked != "" {
		details.Blocked = r.blocked
		if details.BlockedSince.IsZero() {
			details.BlockedSince = cmp.Or(r.modified, tree.modified(r.path))
		}
	}
	details.Body, details.BodyCut = cutBody([]byte(r.body))
	return details, nil
}
