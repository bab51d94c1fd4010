// Package wire has the JSON forms that more than one program reads or writes: project servers' responses, which the
// gateway reads and returns. It must contain no rules.
package wire

import (
	"encoding/json"
	"errors"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/jsonscan"
)

// OrNull returns nil, which is null in JSON, for a zero value.
func OrNull[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

// TimeOrNull returns t in Unix milliseconds, nil for the zero time.
func TimeOrNull(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	return new(t.UnixMilli())
}

// Time converts Unix milliseconds, nil and 0 to the zero time.
func Time(ms *int64) time.Time {
	if ms == nil || *ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(*ms)
}

func Text(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// Number returns what n points to, 0 for nil.
func Number(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// Pipeline is a project server's response at /api/pipeline.
type Pipeline struct {
	Project string                  `json:"project"`
	Layout  string                  `json:"layout,omitempty"`
	Path    string                  `json:"path,omitempty"`   // where the board is
	Branch  string                  `json:"branch,omitempty"` // that is checked out there
	Past    *domain.HistoryProgress `json:"past,omitempty"`   // while it is read from git for the first time
	// Writable is whether the server accepts changes of stories.
	Writable bool    `json:"writable,omitempty"`
	Stages   []Stage `json:"stages"`
	Faults   []Fault `json:"faults"`
	Left     int     `json:"left,omitempty"` // how many more items it has than requested
	// Base, Host and Worktrees, whose paths are of that machine, are of the repository that the board is in.
	Base      *Base    `json:"base"`
	Host      string   `json:"host,omitempty"`
	Worktrees []string `json:"worktrees"`
	// Links say which places are for a single story.
	Links []domain.PlaceLink `json:"links,omitempty"`
	// CheckedOut are the stories that are where they are, or are missing, because another commit was checked out.
	CheckedOut []string `json:"checked_out,omitempty"`
}

type Stage struct {
	Name  string `json:"name"`
	Label string `json:"label,omitempty"` // the board's own word
	Fixed string `json:"fixed,omitempty"` // why only the board's own tool moves stories to or from here
	Other bool   `json:"other,omitempty"` // its status is not one of the board's own; such stages are the last ones
	Items []Item `json:"items"`
}

type Item struct {
	StoryID      string  `json:"story_id"`
	StoryName    string  `json:"story_name"`
	Blocked      *string `json:"blocked"`                  // the reason, null if it is not blocked
	MergeFailure *string `json:"merge_failure"`            // likewise
	SinceMS      int64   `json:"since_ms"`                 // when it entered this stage
	SinceAtLeast bool    `json:"since_at_least,omitempty"` // or before that
	// The others are as in Story.
	Criteria  *domain.Criteria `json:"criteria"`
	DependsOn IDs              `json:"depends_on"`
	WaitsFor  IDs              `json:"waits_for"`
	Version   string           `json:"version,omitempty"`
	Fault     *string          `json:"fault"` // why its file cannot be read, null if it can
	// Worktree and Branch say where it is, null for the board's own work tree.
	Worktree *string   `json:"worktree"`
	Branch   *string   `json:"branch"`
	Work     *ItemWork `json:"work"`
}

// MaxFaults is how many of a board's faults are reported.
const MaxFaults = 100

// Fault is something that is wrong with a file of a board.
type Fault struct {
	Kind    string  `json:"kind"`
	Path    string  `json:"path"`
	StoryID *string `json:"story_id"`
	Text    string  `json:"text"`
	SinceMS int64   `json:"since_ms"`
}

func NewFaults(list []domain.Fault) []Fault {
	return domain.Map(list, func(f domain.Fault) Fault {
		return Fault{f.Kind, f.Path, OrNull(f.StoryID), f.Text, max(0, f.Since.UnixMilli())}
	})
}

// Faults reads the first faults of a list that may be any JSON, and cuts their texts.
func Faults(list []byte) []domain.Fault {
	faults, err := first[Fault](list, MaxFaults)
	if err != nil {
		return nil
	}
	return domain.Map(faults, func(f Fault) domain.Fault {
		return domain.Fault{
			Kind: domain.CutText(f.Kind), Path: domain.CutText(f.Path), StoryID: domain.CutText(Text(f.StoryID)),
			Text: domain.CutReason(f.Text), Since: time.UnixMilli(min(max(f.SinceMS, 0), lastDate)),
		}
	})
}

// Stages returns the stages of a board in the order of domain.InOrder.
func Stages(layout string, list []Stage) []domain.Stage {
	stages := make([]domain.Stage, len(list))
	for i, stage := range list {
		items := make([]domain.Item, len(stage.Items))
		for j := range stage.Items {
			item := &stage.Items[j]
			items[j] = domain.Item{
				StoryID: item.StoryID, StoryName: item.StoryName, Blocked: reason(item.Blocked),
				MergeFailure: reason(item.MergeFailure),
				Since:        time.UnixMilli(min(max(item.SinceMS, 0), lastDate)),
				SinceAtLeast: item.SinceAtLeast,
				Criteria:     item.Criteria, DependsOn: item.DependsOn, WaitsFor: item.WaitsFor, Version: item.Version,
				Fault: Text(item.Fault), Worktree: Text(item.Worktree), Branch: Text(item.Branch),
				Work: item.Work.domain(),
			}
		}
		stages[i] = domain.Stage{
			Name: stage.Name, Label: stage.Label, Fixed: stage.Fixed, Other: stage.Other, Items: items,
		}
	}
	domain.MarkWaiting(layout, stages)
	return domain.InOrder(stages)
}

// lastDate is in Unix milliseconds a day before the end of the year 9999, so that in no time zone is it beyond the last
// date that JSON can have.
const lastDate = 253402214399999

// reason returns why a story is blocked or its merge failed, "" for null.
func reason(text *string) string {
	if text != nil && *text == "" {
		return "no reason given"
	}
	return Text(text)
}

// Story is a story as a project server returns it at /api/stories/{story_id}, and a gateway as part of its own
// response.
type Story struct {
	Project          string           `json:"project"`
	StoryID          string           `json:"story_id"`
	StoryName        string           `json:"story_name"`
	Stage            *string          `json:"stage"`
	SinceMS          *int64           `json:"since_ms"`
	SinceAtLeast     bool             `json:"since_at_least,omitempty"`
	Blocked          *string          `json:"blocked"`
	BlockedSinceMS   *int64           `json:"blocked_since_ms"`
	MergeFailure     *string          `json:"merge_failure"`
	Path             *string          `json:"path"`
	Version          *string          `json:"version"`
	FrontMatter      json.RawMessage  `json:"front_matter"`
	FrontMatterError *string          `json:"front_matter_error"`
	Body             *string          `json:"body"`
	BodyCut          bool             `json:"body_cut"`
	Criteria         *domain.Criteria `json:"criteria"`
	DependsOn        IDs              `json:"depends_on"`
	WaitsFor         IDs              `json:"waits_for"`
	Commits          Commits          `json:"commits"`
	Writable         bool             `json:"writable"`
	Merges           bool             `json:"merges"` // whether the project server merges
	Fault            *string          `json:"fault"`
	Label            string           `json:"label,omitempty"` // the stage's
	// Worktree and Branch say where it is: the former is null for the board's own.
	Worktree  *string `json:"worktree"`
	Branch    *string `json:"branch"`
	Tasks     Tasks   `json:"tasks"`
	Work      Works   `json:"work"`
	BaseStage *string `json:"base_stage,omitempty"` // where the board's own work tree has a story that is elsewhere
}

// Claim says who works on a story.
type Claim struct {
	By      string  `json:"by"`
	AgentID *string `json:"agent_id"`
	SinceMS int64   `json:"since_ms"`
}

// NewClaim returns nil, which is null in JSON, for no claim.
func NewClaim(c *domain.Claim) *Claim {
	if c == nil {
		return nil
	}
	return &Claim{c.By, OrNull(c.AgentID), c.Since.UnixMilli()}
}

// NewStory returns what a gateway knows about a story. The last answer of its project server may be missing.
func NewStory(s domain.Story) Story {
	encoded := Story{
		Project: s.Project, StoryID: s.ID, StoryName: s.Name, Stage: OrNull(s.Stage), SinceMS: TimeOrNull(s.Since),
		SinceAtLeast: s.SinceAtLeast,
		Blocked:      OrNull(s.Blocked), BlockedSinceMS: TimeOrNull(s.BlockedSince), MergeFailure: OrNull(s.MergeFailure),
		FrontMatter: json.RawMessage("{}"), Tasks: Tasks{}, DependsOn: IDs{}, WaitsFor: IDs{},
	}
	f := s.File
	if f == nil {
		return encoded
	}
	encoded.Path, encoded.Version, encoded.Body, encoded.BodyCut = &f.Path, &f.Version, &f.Body, f.BodyCut
	encoded.FrontMatter, encoded.FrontMatterError = f.FrontMatter, OrNull(f.FrontMatterError)
	encoded.Criteria, encoded.Writable, encoded.Merges = f.Criteria, f.Writable, f.Merges
	encoded.Label, encoded.Branch, encoded.Tasks = f.Label, OrNull(f.Branch), append(encoded.Tasks, f.Tasks...)
	encoded.Worktree, encoded.BaseStage, encoded.Work = OrNull(f.Worktree), OrNull(f.BaseStage), NewWorks(f.Work)
	encoded.Commits, encoded.DependsOn, encoded.WaitsFor = f.Commits, NewIDs(f.DependsOn), NewIDs(f.WaitsFor)
	encoded.Fault = OrNull(f.Fault)
	return encoded
}

// Tasks are the tasks in a story's file.
type Tasks []domain.Task

func (t *Tasks) UnmarshalJSON(list []byte) (err error) {
	*t, err = first[domain.Task](list, domain.MaxTasks)
	return err
}

// first reads the first elements of a list, nil for null, one at a time, so that a longer one costs no more.
func first[T any](list []byte, most int) ([]T, error) {
	r := jsonscan.NewReader(list)
	switch r.Kind() {
	case 'n':
		return nil, nil
	case '[':
	default:
		return nil, errors.New("is not a list")
	}
	elements := []T{}
	for range r.Parts() {
		if len(elements) == most {
			break
		}
		var element T
		if err := json.Unmarshal(r.Value(), &element); err != nil {
			return nil, err
		}
		elements = append(elements, element)
	}
	return elements, nil
}
