package domain

import (
	"cmp"
	"encoding/json"
	"time"
)

// Item is a work item (a story) in a stage.
type Item struct {
	StoryID      string
	StoryName    string
	Blocked      string    // the reason, "" if it is not blocked
	MergeFailure string    // the reason, "" if its merge has not failed
	Since        time.Time // when it entered this stage; 1970 if unknown
	SinceAtLeast bool      // it may have entered it earlier
	// BlockedSince and MergeFailedSince are when these began, zero if unknown.
	BlockedSince     time.Time
	MergeFailedSince time.Time
	Criteria         *Criteria // nil without any
	Fault            string    // why its file cannot be read, "" if it can: the rest is what was last read
	DependsOn        []string  // the ids of stories and tasks that come before it
	WaitsFor         []string  // the unfinished ones among them
	Version          string    // changes with the story's record and stage, "" if its server sends none
	Worktree, Branch string    // where it stands, "" for the project's own work tree
	Work             *ItemWork // nil for none
}

// Trouble returns the kind of alert that the story is by itself, "" for none, and the reason. A block takes precedence
// over a failed merge.
func (i *Item) Trouble() (kind AlertKind, reason string) {
	switch {
	case i.Blocked != "":
		return AlertBlocked, i.Blocked
	case i.MergeFailure != "":
		return AlertMerge, i.MergeFailure
	}
	return "", ""
}

// TroubleSince returns when the story was blocked, or else when its merge failed; if that is unknown, or nothing is
// wrong, when it entered its stage. It is the time that lists show.
func (i *Item) TroubleSince() time.Time {
	switch kind, _ := i.Trouble(); kind {
	case AlertBlocked:
		return cmp.Or(i.BlockedSince, i.Since)
	case AlertMerge:
		return cmp.Or(i.MergeFailedSince, i.Since)
	}
	return i.Since
}

// Kinds of faults.
const (
	FaultUnreadable = "unreadable"
	FaultDuplicate  = "duplicate"
)

// Fault is something wrong with a file of a board.
type Fault struct {
	Kind    string
	Path    string // below the board's directory
	StoryID string // "" if it is about none, or several
	Text    string
	Since   time.Time
}

type Stage struct {
	Name    string // such as 2_current
	Label   string // the board's own word for it, "" if it has none
	Fixed   string // why only the board's own tool moves stories to or from here, "" if people can
	Other   bool   // its status is not one of the board's own: nothing can be moved here
	Waiting bool   // work waits here until somebody starts it: see WorkStages
	Items   []Item
}

// BoardPlace says what a board is and where. Its texts are "" if the server does not say.
type BoardPlace struct {
	Layout string
	Path   string // within its repository
	Branch string // the one checked out there
	Past   HistoryProgress
	// Writable is whether the server accepts changes of stories.
	Writable bool
	// Host is the project server's machine, and Worktrees are the repository's there.
	Host      string
	Worktrees []string
	Links     []PlaceLink // of those and of branches, each to its only story
}

// HistoryProgress is how many of the commits that touch a board have been read, zero unless they are being read.
type HistoryProgress struct {
	Read int `json:"read"`
	Of   int `json:"of"`
}

// PipelineAnswer is a good response of a project server at /api/pipeline. It is shared and must not be changed.
type PipelineAnswer struct {
	ETag       string // "" if the server sends none
	Digest     uint64 // a hash of the whole response, to detect changes
	EventsOnly bool   // the server has a feed, but no pipeline
	Board      BoardPlace
	Faults     []Fault // the first of them
	Stages     []Stage
	CheckedOut []string        // the ids of stories that a checkout has placed or removed
	Raw        json.RawMessage // Stages as the project server sent them, or re-encoded if they were cut
	Note       string          // a description of what was cut from Stages, "" for nothing
}

// ProjectPipeline is the state of a project's pipeline as known to the gateway.
type ProjectPipeline struct {
	Project string
	URL     string
	// Reachable is whether the last fetch succeeded. If not, Stale and FetchedAt are not set, and Stages is from the
	// last good response, if there was one, for display.
	Reachable  bool
	Stale      bool // older than requested; a fetch is in progress
	FetchedAt  time.Time
	Board      BoardPlace
	Faults     []Fault // the first of them
	Stages     []Stage
	CheckedOut []string         // as in PipelineAnswer
	Version    [2]uint64        // differs after each change of Stages and their times
	Summarized *PipelineSummary // of Stages, made once for all readers; may be nil
	// Limits are how long stories may be in each stage of work, from Summary().From on, before they count as stuck.
	Limits     []time.Duration
	Text       func() json.RawMessage // Stages as the project server sent them, but with their times; nil without any
	EventsOnly bool                   // as in PipelineAnswer, like Note
	Note       string
	Error      string    // a description of why it is unreachable
	LastSeen   time.Time // the time of the last good response, zero if there was none
}

// limit returns how long a story may be in the stage of work with this index.
func (p *ProjectPipeline) limit(stage int) time.Duration {
	if i := stage - p.Summary().From; i < len(p.Limits) {
		return p.Limits[i]
	}
	return StuckByDefault
}

// NoAnswerYet is the Error of a project whose first fetch has not ended yet.
const NoAnswerYet = "no answer yet"

// PipelineSummary is a summary of a pipeline for lists of many projects.
type PipelineSummary struct {
	From, To        int       // the range of WorkStages
	Open            int       // the number of OpenStages
	Working         int       // the number of stories in the range
	Blocked, Failed int       // the numbers of blocked stories in open stages, and of others whose merge has failed
	Moved           time.Time // when a story last went from one stage to another, zero if no move is known
}

// Summarize summarizes stages, which do not say when something moved.
func Summarize(stages []Stage) PipelineSummary {
	var s PipelineSummary
	s.From, s.To = WorkStages(stages)
	s.Open = OpenStages(stages)
	for i := range stages {
		items := stages[i].Items
		if i >= s.From && i < s.To {
			s.Working += len(items)
		}
		for j := range items {
			switch kind, _ := items[j].Trouble(); {
			case i >= s.Open:
			case kind == AlertBlocked:
				s.Blocked++
			case kind == AlertMerge:
				s.Failed++
			}
		}
	}
	return s
}

func (p *ProjectPipeline) Summary() PipelineSummary {
	if p.Summarized != nil {
		return *p.Summarized
	}
	return Summarize(p.Stages)
}

// Story is a story as its project server shows it now, together with its past from the stream.
type Story struct {
	Project      string
	ID, Name     string
	Stage        string     // "" if it is on no known board
	Since        time.Time  // when it entered its stage; zero if unknown
	SinceAtLeast bool       // it may have entered it earlier
	Blocked      string     // the reason, "" if it is not blocked
	BlockedSince time.Time  // zero if unknown
	MergeFailure string     // the reason, "" for none
	File         *StoryFile // nil if the project server did not send it

	URL       string // of the project server
	Reachable bool
	Error     string      // a description of why File is nil; "" if the story has left the board
	History   []PastEvent // its newest events, sorted oldest first
	Visits    []Visit     // oldest first
	Claim     *Claim      // nil for none
	Review    *Review     // nil for none
	Cost      *Cost       // nil without model calls
}

// StoryFile is a story's file. It comes from a project server, which may be hostile; only its sizes have been checked.
type StoryFile struct {
	Path             string // within the work directory
	Version          string // changes with content and stage
	FrontMatter      json.RawMessage
	FrontMatterError string // "" for well-formed front matter
	Body             string // Markdown
	BodyCut          bool
	Criteria         *Criteria // nil without a task list
	Commits          []Commit  // nil without git
	Writable         bool
	Merges           bool     // its project server merges branches
	Fault            string   // why it cannot be read, "" if it can
	DependsOn        []string // as in Item, like WaitsFor
	WaitsFor         []string
	Label            string  // the stage's: the board's own word, "" if it has none
	Branch           string  // of the work tree, "" for none
	Worktree         string  // where it stands, "" for the project's own
	BaseStage        string  // where the project's own has it if it stands elsewhere, "" for nowhere
	Tasks            []Task  // in the file
	Work             []Place // nil without git, the strongest link first
}

type Criteria struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// MaxTasks is how many tasks of a story are shown.
const MaxTasks = 2000

// Task is an item of the task list in a story's file.
type Task struct {
	Path     string `json:"path,omitempty"` // of its file, if the story's are in several
	Line     int    `json:"line"`           // from 1
	Text     string `json:"text"`
	Done     bool   `json:"done"`
	Optional bool   `json:"optional"` // it does not count
}

type Commit struct {
	Hash    string `json:"hash"`
	Author  string `json:"author"`
	AtMS    int64  `json:"at_ms"`
	Subject string `json:"subject"`
	Files   int    `json:"files"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

type StoryRef struct {
	Project, ID, Name string
	Stage             string // "" when it is on no board
	StageTitle        string // likewise, for people
	Item              *Item  // as found on the board by a search, nil for none
	Finished          bool   // whether it is in the done stage or a later one
}

const (
	// MaxSearchOffset is how many results of each kind a search can skip.
	MaxSearchOffset = 10_000
	// MaxFoundTexts is how many texts one project is asked for.
	MaxFoundTexts = MaxSearchOffset + 50
)

// TextRef is a story whose text contains what was searched for.
type TextRef struct {
	StoryRef
	Heading string // the one above the excerpt, "" for none
	Excerpt string
	Whole   bool // the words follow one another
}

// SearchResult is the result of a search, each list with the best match first.
type SearchResult struct {
	Stories  []StoryRef
	Projects []string
	Agents   []Agent
	Texts    []TextRef
	Total    SearchTotals
	// OnBoard is how many of the stories are on a board now.
	OnBoard int
	// Silent is how many projects did not search their texts in time, or were not asked because there are so many.
	Silent int
	// Suggestion is the nearest name if nothing was found, "" if none is near.
	Suggestion string
}

// SearchTotals is how many results a search has in all.
type SearchTotals struct{ Stories, Projects, Agents, Texts int }

func (t SearchTotals) All() int { return t.Stories + t.Projects + t.Agents + t.Texts }
