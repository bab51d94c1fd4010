package board

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// faultyFile says why a file of the board cannot be read.
type faultyFile struct{ path, reason string }

func (f *faultyFile) Error() string { return f.path + " cannot be read: " + f.reason }

// newFaultyFile returns an error for a file, unless err already names one.
func newFaultyFile(path string, err error) *faultyFile {
	if known, is := errors.AsType[*faultyFile](err); is {
		return known
	}
	return &faultyFile{path, limit(err.Error())}
}

// fault is a fault of the board as a scan found it.
type fault struct {
	kind, path, story, text string
	since                   time.Time // zero for the first scan
}

func (f *faultyFile) fault(story string, since time.Time) fault {
	return fault{domain.FaultUnreadable, f.path, story, f.Error(), since}
}

// faultsOf returns the faults of what is in files of their own.
func (s *scanner) faults() (found []fault) {
	for _, st := range s.stages {
		for _, f := range st.files {
			if f.story != nil && f.story.stage == st.name && f.story.facts.fault != "" {
				file := &faultyFile{st.name + "/" + f.id + ".md", f.story.facts.fault}
				found = append(found, file.fault(f.id, f.modified))
			}
		}
	}
	return found
}

func (s *units) faults() (found []fault) {
	known := s.index.Load()
	for _, err := range known.rules.faults {
		found = append(found, err.fault("", time.Time{}))
	}
	for _, u := range s.units {
		if u.fault != nil {
			only, since := "", time.Time{}
			if len(u.stories) == 1 {
				only, since = u.stories[0].file.id, u.stories[0].file.modified
			}
			found = append(found, u.fault.fault(only, since))
			continue
		}
		for i := range u.stories {
			if story := &u.stories[i]; story.fault != nil {
				found = append(found, story.fault.fault(story.file.id, story.file.modified))
			}
		}
	}
	for id, list := range known.copies {
		for i, p := range list {
			if i == 0 || p.gone || known.rules.unique == nil || !known.rules.unique(p.unit.name) {
				continue
			}
			first := slices.IndexFunc(list, func(o place) bool { return known.rules.unique(o.unit.name) })
			if first == i {
				continue
			}
			text := fmt.Sprintf("%s has the id %s, which %s has", p.story().path, id, list[first].story().path)
			if p.unit == list[first].unit {
				text = fmt.Sprintf("%s has the id %s twice", p.story().path, id)
			}
			found = append(found, fault{domain.FaultDuplicate, p.story().path, p.story().file.id, text, p.story().file.modified})
		}
	}
	return found
}

// maxFaults is how many faults of a board are reported.
const maxFaults = 100

// takeFaults compares the board's faults with those already known, logs those that begin or end, and returns whether
// any did.
func (b *Board) takeFaults(now time.Time) (changed bool) {
	found := b.layout.faults()
	list := make([]domain.Fault, 0, len(found))
	for _, f := range found {
		known := slices.IndexFunc(b.known, func(k domain.Fault) bool {
			return k.Kind == f.kind && k.Path == f.path && k.StoryID == f.story
		})
		next := domain.Fault{Kind: f.kind, Path: f.path, StoryID: f.story, Text: f.text, Since: now}
		switch {
		case known >= 0:
			next.Since = b.known[known].Since
		case b.view.Load() == nil && !f.since.IsZero():
			next.Since = f.since
		}
		if known < 0 || b.known[known].Text != f.text {
			b.log.Warn("board: "+f.text, "path", f.path)
			changed = true
		}
		list = append(list, next)
	}
	slices.SortFunc(list, func(x, y domain.Fault) int {
		return strings.Compare(x.Path+"\x00"+x.StoryID+"\x00"+x.Kind, y.Path+"\x00"+y.StoryID+"\x00"+y.Kind)
	})
	for _, k := range b.known {
		if !slices.ContainsFunc(list, func(f domain.Fault) bool { return f.Kind == k.Kind && f.Path == k.Path }) {
			b.log.Info("board: it is over that "+k.Text, "path", k.Path)
		}
	}
	changed = changed || len(list) != len(b.known)
	b.known = list
	return changed
}
