package domain

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Item is a work item (a story) in a stage.
type Item struct {
	StoryID      string
	StoryName    string
	Blocked      string    // the reason, "" when it is not blocked
	MergeFailure string    // the reason, "" when its merge did not fail
	Since        time.Time // when it came into this stage; 1970 where that is not known
	// BlockedSince and MergeFailedSince are when these began, zero where that is not known.
	BlockedSince     time.Time
	MergeFailedSince time.Time
}

// TroubleSince is when the story was blocked first, or else when its merge failed first; where that is not known, when it came
// into its stage.
func (i *Item) TroubleSince() time.Time {
	if i.Blocked != "" {
		return cmp.Or(i.BlockedSince, i.Since)
	}
	return cmp.Or(i.MergeFailedSince, i.Since)
}

// Stage is a stage of a pipeline with its items.
type Stage struct {
	Name  string // digits, "_", word: 2_current
	Items []Item
}

// PipelineAnswer is a good answer of a project server at /api/pipeline. It is shared: nobody may change it.
type PipelineAnswer struct {
	ETag       string // "" when the server sends none
	Digest     uint64 // of the whole answer, to see whether another one differs
	EventsOnly bool   // the server has a feed, but no pipeline
	Stages     []Stage
	Raw        json.RawMessage // Stages as the project server sent them, or as known when they were cut
	Note       string          // what was cut from Stages, in words; "" for nothing
}

// WithoutRaw returns a copy without its text.
func (a *PipelineAnswer) WithoutRaw() *PipelineAnswer {
	kept := *a
	kept.Raw = nil
	return &kept
}

// ProjectPipeline is the state of one project's pipeline as the gateway knows it.
type ProjectPipeline struct {
	Project string
	URL     string
	// Reachable says whether the last fetch succeeded. Only then Stages, Raw, Stale and FetchedAt are the answer;
	// otherwise Stages still holds the last good answer, if there was one, for people to look at.
	Reachable   bool
	Stale       bool // older than what was asked for, while a fetch goes on
	FetchedAt   time.Time
	Stages      []Stage
	Summarized  *PipelineSummary // of Stages, made once for all readers; may be nil
	Raw         json.RawMessage  // as in PipelineAnswer, like EventsOnly and Note
	EventsOnly  bool
	Note        string
	Error       string    // why it is unreachable, in words
	LastSeen    time.Time // of the last good answer, zero when there was none
	FailedSince time.Time // when it became unreachable
}

// ShowsSame reports whether both show the same, no matter when that was last seen. Stages and raw answers, which never change,
// are compared by address only.
func (p ProjectPipeline) ShowsSame(other ProjectPipeline) bool {
	return p.Project == other.Project && p.URL == other.URL && p.Reachable == other.Reachable && p.Stale == other.Stale &&
		p.EventsOnly == other.EventsOnly && p.Note == other.Note && p.Error == other.Error && p.FailedSince.Equal(other.FailedSince) &&
		SameArray(p.Stages, other.Stages) && SameArray(p.Raw, other.Raw)
}

// SameArray reports whether both slices share one array: of what never changes, the same values.
func SameArray[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// NoAnswerYet is the Error of a project whose first answer may still be on its way.
const NoAnswerYet = "no answer yet"

// StageTitle returns the stage's name as people read it: "2_current" is "Current", "3_qa" is "QA", "4_code_review" is
// "Code review".
func StageTitle(name string) string {
	if name == "" {
		return ""
	}
	digits, title, found := strings.Cut(name, "_")
	if !found || title == "" || strings.ContainsFunc(digits, func(r rune) bool { return !unicode.IsDigit(r) }) {
		title = name
	}
	if len(title) <= 2 {
		return strings.ToUpper(title)
	}
	first, size := utf8.DecodeRuneInString(title)
	return string(unicode.ToUpper(first)) + strings.ReplaceAll(title[size:], "_", " ")
}

// WorkStages returns the range of stages (to is not in it) in which stories are worked on: what follows the first one,
// the backlog, up to the one called done, or else up to the last one.
func WorkStages(stages []Stage) (from, to int) {
	to = slices.IndexFunc(stages, func(s Stage) bool {
		return (strings.HasSuffix(s.Name, "done") || strings.HasSuffix(s.Name, "Done")) && StageTitle(s.Name) == "Done"
	})
	if to < 0 {
		to = max(0, len(stages)-1)
	}
	return min(1, to), to
}
