package board

import (
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// dependent is a story that depends on others.
type dependent struct {
	*unitStory
	stage int
}

// link records which stories the dependents depend on, and which of these they are still waiting for.
func (s *units) link(x *index, dependents []dependent) {
	if len(dependents) == 0 {
		return
	}
	same := x.rules.same
	if same == nil {
		same = func(id string) string { return id }
	}
	stages := domain.Map(s.stages, func(s *stage) domain.Stage { return domain.Stage{Name: s.name, Other: s.other} })
	done := domain.DoneStage(stages)
	names, isDone := map[string]string{}, map[string]bool{}
	for at, st := range s.stages {
		for _, f := range st.files {
			names[same(f.id)], isDone[f.id] = f.id, at == done || x.stages[at].key == completedKey
		}
	}
	for _, u := range s.units {
		for i := range u.stories {
			for _, part := range u.stories[i].parts {
				isDone[part] = true
			}
		}
	}
	for _, d := range dependents {
		var on, waits []string
		for _, id := range d.depends {
			if name, known := names[same(id)]; known {
				id = name
			}
			if !slices.Contains(on, id) && len(on) < maxDepends {
				on = append(on, id)
				if !isDone[id] {
					waits = append(waits, id)
				}
			}
		}
		if d.stage >= done && !stages[d.stage].Other || stages[d.stage].HasEnded() {
			waits = nil
		}
		d.file.facts.dependsOn, d.file.facts.waitsFor = strings.Join(on, "\x00"), strings.Join(waits, "\x00")
	}
}

// maxDepends is how many others a story can depend on.
const maxDepends = 100

// maxParts is how many finished parts of a story are known to others, which may depend on them.
const maxParts = 1000

func idsOf(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, "\x00")
}
