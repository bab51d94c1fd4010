package views

import (
	"slices"

	"switchyard/internal/domain"
)

// failedMerge is a merge of a story that failed.
type failedMerge struct {
	event domain.PastEvent
	last  string // line of its reason
	lines int
	same  bool // its last line is the same as that of the next failure
	now   bool // it is still in force
}

// failedMerges returns a story's failed merges that are known, newest first, if one of them is over.
func failedMerges(s domain.Story) (list []failedMerge) {
	for _, e := range slices.Backward(s.History) {
		if e.Type != domain.MergeFailure {
			continue
		}
		f := failedMerge{event: e, now: s.MergeFailure != "" && len(list) == 0}
		f.last, f.lines = lastLine(e.Details().Reason)
		f.same = len(list) > 0 && list[len(list)-1].last == f.last
		list = append(list, f)
	}
	if len(list) == 1 && list[0].now {
		return nil
	}
	return list
}

// failureURL is the address of a story's page with the log of one of its failures.
func failureURL(s domain.Story, event int64) string {
	return withQuery(StoryURL(s.Project, s.ID), "failure", id(event))
}

// failureShown returns the past failure that the reader has chosen, nil for none.
func (p StoryProps) failureShown() *domain.PastEvent {
	for i, e := range p.Story.History {
		if e.ID == p.Failure && e.Type == domain.MergeFailure {
			return &p.Story.History[i]
		}
	}
	return nil
}
