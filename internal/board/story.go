package board

import (
	"cmp"
	"slices"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/feed"
)

// story is what the tracker knows about one id.
type story struct {
	id           string
	stage        string // the stage that it counts for
	facts        facts
	since        time.Time // when it was first seen in its stage
	blockedSince time.Time // when it was first seen to be blocked; zero if it is not
	modified     time.Time // when its record was modified

	scan             int        // the last scan that found it
	copies, previous []fileCopy // its files then, and at the scan that found it before
	gone             time.Time  // when it was first missed; zero while it exists
	torn             time.Time  // when its file was first found torn; zero while it is whole
	stood            *story     // as it was before a checkout, until it is so again or changes otherwise
}

// fileCopy is a story's file in one of the stages.
type fileCopy struct {
	stage   string
	settled bool
	number  int // index of the stage when the file was entered
	file    *file
}

// update chooses which file of a story counts, takes the facts from it, adds notifications of what is new, and reports
// whether the story has changed. The story must have a file.
func (s *story) update(now time.Time, preexisting map[string]bool, t *tracker, c *changes) (changed bool) {
	was, current := *s, s.choose(t.inHead)
	s.stage, s.gone, s.modified = current.stage, time.Time{}, current.file.modified
	old := preexisting[current.stage] && (was.stage == "" || current.settled) || current.file.silent
	found := current.file.facts
	if t.failure != nil {
		found.mergeFailure = cmp.Or(found.mergeFailure, t.failure(s.id))
	}
	s.takeFacts(found, now, old, c)
	began := now
	if old {
		began = current.file.modified
	}
	if was.stage != s.stage && (was.stage == "" || !old || current.file.silent || t.checkout) {
		s.since = began
	}
	switch {
	case s.facts.blocked == "":
		s.blockedSince = time.Time{}
	case was.facts.blocked == "":
		s.blockedSince = began
	}
	if !old {
		s.notify(was, c)
	}
	s.remember(was, t.checkout)
	return was.stage != s.stage || was.facts != s.facts
}

// remember keeps how the story was before a checkout: when that comes back, it counts as unchanged since then.
func (s *story) remember(was story, checkout bool) {
	switch {
	case s.standsAs(&was):
	case !checkout:
		s.stood = nil
	case s.stood == nil:
		was.copies, was.previous = nil, nil
		s.stood = &was
	case s.standsAs(s.stood):
		s.since, s.blockedSince, s.stood = s.stood.since, s.stood.blockedSince, nil
	}
}

func (s *story) standsAs(other *story) bool {
	return s.stage == other.stage && (s.facts.blocked == "") == (other.facts.blocked == "") &&
		(s.facts.mergeFailure == "") == (other.facts.mergeFailure == "")
}

// notify adds notifications of how the story differs from was.
func (s *story) notify(was story, c *changes) {
	if was.stage != s.stage {
		c.notify(feed.Notification{
			Type: domain.StageTransition, StoryID: s.id, Name: s.name(), FromStage: was.stage, ToStage: s.stage,
		})
	}
	if reason := s.facts.mergeFailure; reason != "" && reason != was.facts.mergeFailure {
		c.notify(feed.Notification{Type: domain.MergeFailure, StoryID: s.id, Name: s.name(), Reason: reason})
	}
	if reason := s.facts.blocked; reason != "" && reason != was.facts.blocked {
		c.notify(feed.Notification{Type: domain.StoryBlocked, StoryID: s.id, Name: s.name(), Reason: reason})
	}
}

// choose returns the copy that counts: one that HEAD does not have, since git brings files back, or among those that it
// has the one in the last stage; else the one modified last; on a tie one in a stage where the story was not before,
// else the one in its previous stage, else the one in the last stage.
func (s *story) choose(inHead func(stage, id string) bool) fileCopy {
	best := s.copies[0]
	for _, other := range s.copies[1:] {
		had, has := 0, 0
		if inHead != nil && inHead(best.stage, s.id) {
			had = 1
		}
		if inHead != nil && inHead(other.stage, s.id) {
			has = 1
		}
		order := cmp.Or(
			cmp.Compare(had, has),
			had*has*cmp.Compare(other.number, best.number),
			other.file.modified.Compare(best.file.modified),
			cmp.Compare(s.rank(other), s.rank(best)),
			cmp.Compare(other.number, best.number),
		)
		if order > 0 {
			best = other
		}
	}
	return best
}

func (s *story) rank(c fileCopy) int {
	switch {
	case !slices.ContainsFunc(s.previous, func(p fileCopy) bool { return p.stage == c.stage }):
		return 2
	case c.stage == s.stage:
		return 1
	}
	return 0
}

// takeFacts takes over the file's facts. A torn or unreadable file leaves the story as it was, since it may be in the
// middle of a save; if it stays torn, that is a fault, unless the file is just empty.
func (s *story) takeFacts(f facts, now time.Time, old bool, c *changes) {
	if f.state == whole {
		s.facts, s.torn = f, time.Time{}
		return
	}
	if s.facts == (facts{}) { // nothing else is known: a heading is a better name than the id
		s.facts.name = f.name
	}
	if s.torn.IsZero() {
		if s.torn = now; old {
			s.torn = now.Add(-grace)
		}
	}
	due := s.torn.Add(grace)
	switch {
	case now.Before(due):
		c.rescanAt(due)
	case f.fault != "":
		s.facts.fault, s.facts.version = f.fault, f.version
	case f.state == torn:
		s.facts = facts{name: f.name, criteria: f.criteria, version: f.version}
	}
}

func (s *story) name() string { return cmp.Or(s.facts.name, s.id) }

func (s *story) public() Story {
	return Story{
		ID: s.id, Name: s.name(), Blocked: s.facts.blocked, MergeFailure: s.facts.mergeFailure,
		Since: s.since, BlockedSince: s.blockedSince, Criteria: s.facts.criteria, Version: s.facts.version,
		DependsOn: idsOf(s.facts.dependsOn), WaitsFor: idsOf(s.facts.waitsFor), Fault: s.facts.fault,
		modified: s.modified,
	}
}
