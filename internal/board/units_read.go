package board

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
)

func (s *units) find(tree *tree, id string) (e entry, rule int, err error) {
	known := s.index.Load()
	tree.kept = map[string]*storyFile{}
	if known.rules.source != nil {
		if tree.content, _, _, err = known.rules.source(false); err != nil {
			return e, 0, err
		}
	}
	p, is := known.places[id]
	if !is {
		return e, 0, fs.ErrNotExist
	}
	entries, err := known.rules.stories(p.unit.name, tree, p.unit.entries)
	if err != nil && (!errors.Is(err, errTorn) || len(entries) == 0) {
		return e, 0, newFaultyFile(p.unit.path(), err)
	}
	nth := p.nth()
	i := slices.IndexFunc(entries, func(e entry) bool { nth--; return e.id == p.story().id && nth < 0 })
	if i < 0 {
		return e, 0, fs.ErrNotExist
	}
	return entries[i], known.stage(entries[i].stage), nil
}

func (s *units) read(story Story, stage string) (*Details, error) {
	tree, err := openTree(s.dir)
	if err != nil {
		return nil, err
	}
	defer tree.close()
	e, rule, err := s.find(tree, story.ID)
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
