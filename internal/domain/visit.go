package domain

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Visit is the time that a story spent in a stage.
type Visit struct {
	Project string
	StoryID string
	// Number identifies a visit among those of its story and orders them: the time at which it began, in Unix
	// milliseconds, or more.
	Number int64
	Stage  string    // "" if unknown
	From   time.Time // zero if unknown
	To     time.Time // zero while the story is there
	Next   string    // the stage that it left for; "" if it left the board, or while it is there
	Source VisitSource
	// Blocked is how long it was blocked there, not counting a current block. BlockedSince and MergeFailedSince are
	// when a current block or merge failure began, perhaps in an earlier stage.
	Blocked          time.Duration
	BlockedSince     time.Time
	MergeFailedSince time.Time
	// EventAt is when the last event about the story was received, zero if a later visit has it. Anything requested
	// earlier may be older than that.
	EventAt time.Time
}

type VisitSource string

const (
	FromEvent VisitSource = ""
	FromBoard VisitSource = "board"  // only a pipeline has shown it; an event that says more corrects it
	FromGit   VisitSource = "git"    // only git knows when it began
	Undone    VisitSource = "undone" // it is part of a later one: the story was back at once
)

// returnWindow is how soon a story comes back by an Undo or after a slip: it then counts as never having left.
const returnWindow = time.Minute

// BlockedFor returns how long the story has been blocked in this visit up to now.
func (v Visit) BlockedFor(now time.Time) time.Duration {
	if v.BlockedSince.IsZero() || !v.To.IsZero() {
		return v.Blocked
	}
	return v.Blocked + max(0, now.Sub(Later(v.From, v.BlockedSince)))
}

// IsSince reports whether only the project server says when the visit began.
func (v *Visit) IsSince(at time.Time) bool { return v.Source == FromBoard && !v.From.After(at) }

// leave ends the visit. If the clock has been set back since its beginning, that is unknown.
func (v *Visit) leave(at time.Time, next string) {
	if at.Before(v.From) {
		v.From = time.Time{}
	}
	v.To, v.Next = at, next
	if !v.BlockedSince.IsZero() {
		v.Blocked += max(0, at.Sub(Later(v.From, v.BlockedSince)))
	}
	v.BlockedSince, v.MergeFailedSince = time.Time{}, time.Time{}
	if next != "" {
		v.EventAt = time.Time{}
	}
}

// reopen undoes leave, for a story blocked since since, or not blocked if that is zero.
func (v *Visit) reopen(since time.Time) {
	if !since.IsZero() {
		v.Blocked = max(0, v.Blocked-max(0, v.To.Sub(Later(v.From, since))))
	}
	v.To, v.Next, v.BlockedSince = time.Time{}, "", since
}

func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

type StoryKey struct{ Project, ID string }

func (k StoryKey) String() string { return k.Project + "/" + k.ID }

// maxVisitText is the longest story id and stage name, in bytes, of which visits are kept: every database can index
// that.
const maxVisitText = 500

func canVisit(text string) bool {
	return len(text) <= maxVisitText && utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

// VisitKey returns the story whose visits a record changes, false if there is none.
func VisitKey(project string, r Record) (key StoryKey, ok bool) {
	switch r.Type {
	case StageTransition, StoryBlocked, MergeFailure:
		key = StoryKey{project, r.Details().StoryID}
	}
	return key, key.ID != "" && canVisit(key.ID)
}

// Observation is what a pipeline shows of some stories.
type Observation struct {
	Project string
	Seen    []Sighting
	Asked   time.Time // when its fetch began
	Now     time.Time
}

// Sighting is a story as a pipeline shows it.
type Sighting struct {
	StoryID, StoryName   string
	Stage                string // "" if it is not on the board
	Since                time.Time
	Blocked, MergeFailed bool
}

const (
	// maxStageNames is how many stages a project's visits distinguish. Pipelines have far fewer; it limits what a
	// hostile feed can cost.
	maxStageNames = 100
	// maxOpenVisits is how many stories of a project are followed, as many as a pipeline may have.
	maxOpenVisits = 20_000
)

// VisitCounts are the numbers that the limits of a project's visits apply to.
type VisitCounts struct {
	Project string
	Open    int      // visits still open
	Stages  []string // the names of all stages
}

// allow reports whether a stage may be visited, and adds it.
func (c *VisitCounts) allow(stage string) bool {
	if slices.Contains(c.Stages, stage) {
		return true
	}
	if len(c.Stages) >= maxStageNames || !canVisit(stage) {
		return false
	}
	c.Stages = append(c.Stages, stage)
	return true
}

// VisitBook applies events and sightings to the newest visits of stories.
type VisitBook struct {
	counts  map[string]*VisitCounts
	stories map[StoryKey]*storyVisits
	stored  map[string]VisitCounts
}

// NewVisitBook returns a book of stories. stored are up to NewestVisits of each, in the order of their numbers, and
// counts those of their projects.
func NewVisitBook(stored []Visit, counts []VisitCounts) *VisitBook {
	b := &VisitBook{map[string]*VisitCounts{}, map[StoryKey]*storyVisits{}, map[string]VisitCounts{}}
	for _, c := range counts {
		b.stored[c.Project], b.counts[c.Project] = c, &c
	}
	for _, v := range stored {
		story := b.story(StoryKey{v.Project, v.StoryID})
		story.visits, story.stored = append(story.visits, v), append(story.stored, v)
	}
	return b
}

func (b *VisitBook) story(key StoryKey) *storyVisits {
	story := b.stories[key]
	if story == nil {
		if b.counts[key.Project] == nil {
			b.counts[key.Project] = &VisitCounts{Project: key.Project}
		}
		story = &storyVisits{key: key, counts: b.counts[key.Project]}
		b.stories[key] = story
	}
	return story
}

func (b *VisitBook) Add(events ...Event) {
	for _, e := range events {
		if key, ok := VisitKey(e.Project, e.Record); ok {
			b.story(key).add(e)
		}
	}
}

// Observe returns the projects with sightings that newer events contradict: their pipelines must be observed again.
func (b *VisitBook) Observe(observed []Observation) (contradicted []string) {
	for _, o := range observed {
		settled := true
		for _, seen := range o.Seen {
			settled = b.story(StoryKey{o.Project, seen.StoryID}).observe(seen, o.Asked, o.Now) && settled
		}
		if !settled {
			contradicted = append(contradicted, o.Project)
		}
	}
	return contradicted
}

// Changed returns what is to be stored: visits, in the order of their numbers, and counts.
func (b *VisitBook) Changed() (visits []Visit, counts []VisitCounts) {
	for _, story := range b.stories {
		for _, v := range story.visits {
			if !slices.Contains(story.stored, v) {
				visits = append(visits, v)
			}
		}
	}
	for project, c := range b.counts {
		if stored := b.stored[project]; stored.Open != c.Open || len(stored.Stages) != len(c.Stages) {
			counts = append(counts, *c)
		}
	}
	return visits, counts
}
