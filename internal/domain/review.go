package domain

import (
	"slices"
	"time"
	"unicode/utf8"
)

// Verdict is a judgement of the work on a story.
type Verdict string

const (
	Approved Verdict = "approved"
	SentBack Verdict = "sent_back"
)

func (v Verdict) Word() string {
	if v == SentBack {
		return "sent back"
	}
	return string(v)
}

// Review is the last verdict on a story.
type Review struct {
	Project, StoryID string
	Verdict          Verdict
	Head             string // the commit that was looked at
	Note             string // "" for none
	By               string
	Via              Channel
	At               time.Time
	TakenAt          time.Time // when an agent got it; zero before
	Outdated         bool      // no place is at the head, and the base does not contain it; not stored
}

// MaxNote is how long the note of a verdict may be, in characters.
const MaxNote = 4000

// Check returns Invalid for a verdict that nobody can give.
func (r Review) Check() error {
	switch length := utf8.RuneCountInString(r.Note); {
	case r.Verdict != Approved && r.Verdict != SentBack:
		return Errorf(Invalid, "verdict: must be approved or sent_back")
	case r.Head == "" || len(r.Head) > MaxText:
		return Errorf(Invalid, "head: must be the commit that was looked at")
	case length > MaxNote:
		return Errorf(Invalid, "note: must have at most %d characters", MaxNote)
	case r.Verdict == SentBack && length == 0:
		return Errorf(Invalid, "note: sending back needs a note that says why")
	}
	return nil
}

// HasPlace reports whether a place of the story is at the head that was looked at, as far as is known.
func (r Review) HasPlace(f *StoryFile) bool {
	return f == nil || f.Work == nil || PlaceWith(f.Work, r.Head) != nil
}

// Record returns the review's record in the merged stream.
func (r Review) Record(storyName string) Record {
	fields := map[string]any{
		"type": StoryReviewed, "story_id": r.StoryID, "story_name": storyName, "verdict": r.Verdict, "head": r.Head,
		"by": r.By, "via": r.Via, "timestamp_ms": r.At.UnixMilli(),
	}
	if r.Note != "" {
		fields["reason"] = r.Note
	}
	return Record{Type: StoryReviewed, At: time.UnixMilli(r.At.UnixMilli()), JSON: EncodeJSON(fields)}
}

// ReviewRecord is what is stored of a review together with its record.
type ReviewRecord struct {
	Review  Review
	Entry   AuditEntry
	Changes []StoryChange // made with it
}

// MergeAttempt is the last merge of a project that a gateway requested.
type MergeAttempt struct {
	StoryID, Branch string
	Since           time.Time
	Refused         string // why it was not made; "" while it is under way
}

// StageAfter returns where a verdict moves a story, "" if it stays where it is. claimed is whether somebody works on
// it.
func (v Verdict) StageAfter(stages []Stage, at string, claimed bool) string {
	if v == SentBack {
		from, to := WorkStages(stages)
		if !claimed || from >= to {
			from = WaitingStage(stages)
		}
		if from < len(stages) {
			return stages[from].Name
		}
		return ""
	}
	place := slices.IndexFunc(stages, func(s Stage) bool { return s.Name == at })
	if place < 0 || place >= DoneStage(stages) {
		return ""
	}
	for _, next := range stages[place+1:] {
		if !next.Other {
			return next.Name
		}
	}
	return ""
}
