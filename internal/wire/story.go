package wire

import (
	"bytes"
	"encoding/json"
	"errors"

	"switchyard/internal/domain"
)

// Story is a story as a project server returns it at /api/stories/{story_id}, and a gateway as part of its own
// response.
type Story struct {
	Project          string          `json:"project"`
	StoryID          string          `json:"story_id"`
	StoryName        string          `json:"story_name"`
	Stage            *string         `json:"stage"`
	SinceMS          *int64          `json:"since_ms"`
	Blocked          *string         `json:"blocked"`
	BlockedSinceMS   *int64          `json:"blocked_since_ms"`
	MergeFailure     *string         `json:"merge_failure"`
	Path             *string         `json:"path"`
	Version          *string         `json:"version"`
	FrontMatter      json.RawMessage `json:"front_matter"`
	FrontMatterError *string         `json:"front_matter_error"`
	Body             *string         `json:"body"`
	BodyCut          bool            `json:"body_cut"`
	Criteria         *Criteria       `json:"criteria"`
	Commits          Commits         `json:"commits"`
	Writable         bool            `json:"writable"`
}

// Criteria counts the items of a story's task list.
type Criteria struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// Commit is a commit that mentions a story.
type Commit struct {
	Hash    string `json:"hash"`
	Author  string `json:"author"`
	AtMS    int64  `json:"at_ms"`
	Subject string `json:"subject"`
	Files   int    `json:"files"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// MaxCommits is the maximum number of commits of a story.
const MaxCommits = 50

// Commits are a story's commits, null without git.
type Commits []Commit

// UnmarshalJSON reads the first MaxCommits of a list, so that a longer one costs no more.
func (c *Commits) UnmarshalJSON(list []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(list))
	switch start, err := decoder.Token(); {
	case err != nil || start == nil:
		return err
	case start != json.Delim('['):
		return errors.New("commits are not a list")
	}
	*c = Commits{}
	for decoder.More() && len(*c) < MaxCommits {
		var commit Commit
		if err := decoder.Decode(&commit); err != nil {
			return err
		}
		*c = append(*c, commit)
	}
	return nil
}

// Visit is the time that a story spent in a stage.
type Visit struct {
	Stage     string `json:"stage"`
	FromMS    int64  `json:"from_ms"`
	ToMS      *int64 `json:"to_ms"` // null while the story is there
	BlockedMS int64  `json:"blocked_ms"`
}

// NewVisit converts a visit to its JSON form.
func NewVisit(v domain.Visit) Visit {
	return Visit{v.Stage, v.From.UnixMilli(), TimeOrNull(v.To), v.Blocked.Milliseconds()}
}
