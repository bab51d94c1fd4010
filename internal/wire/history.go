package wire

import "switchyard/internal/domain"

// History is a part of a project server's response at /api/history.
type History struct {
	ID       string `json:"id"` // changes with the history
	Complete bool   `json:"complete"`
	Next     int64  `json:"next"` // the position after these moves
	Moves    Moves  `json:"moves"`
}

// HistoryPart is how many moves are asked for at once.
const HistoryPart = 1000

// Moves are the moves in a part of a history.
type Moves []Move

// UnmarshalJSON reads one more than may be asked for, so that a list that is too long can be told.
func (m *Moves) UnmarshalJSON(list []byte) (err error) {
	*m, err = first[Move](list, HistoryPart+1)
	return err
}

// Move is what a commit did to a story.
type Move struct {
	StoryID   string  `json:"story_id"`
	FromStage *string `json:"from_stage"` // null for its first appearance
	ToStage   string  `json:"to_stage"`
	AtMS      int64   `json:"at_ms"`
	Author    string  `json:"author"`
	Commit    string  `json:"commit"`
}

const MaxCommits = 50

// Commits are a story's commits, null without git.
type Commits []domain.Commit

func (c *Commits) UnmarshalJSON(list []byte) (err error) {
	*c, err = first[domain.Commit](list, MaxCommits)
	return err
}

// IDs are ids of stories, cut like their texts.
type IDs []string

// NewIDs returns IDs that are [] in JSON, not null, if there are none.
func NewIDs(ids []string) IDs { return append(IDs{}, ids...) }

const maxIDs = 100

func (l *IDs) UnmarshalJSON(list []byte) (err error) {
	if *l = (IDs{}); string(list) == "[]" { // as most are
		return nil
	}
	ids, err := FirstIDs(list, maxIDs)
	*l = append(*l, ids...)
	return err
}

// FirstIDs reads the first ids of a list, and cuts them.
func FirstIDs(list []byte, most int) ([]string, error) {
	ids, err := first[string](list, most)
	return domain.Map(ids, domain.CutText), err
}

// Visit is the time that a story spent in a stage.
type Visit struct {
	Stage     string `json:"stage"`
	FromMS    int64  `json:"from_ms"`
	ToMS      *int64 `json:"to_ms"` // null while the story is there
	BlockedMS int64  `json:"blocked_ms"`
}

func NewVisit(v domain.Visit) Visit {
	return Visit{v.Stage, v.From.UnixMilli(), TimeOrNull(v.To), v.Blocked.Milliseconds()}
}

// FoundTexts is a project server's response at /api/search.
type FoundTexts struct {
	Total int   `json:"total"`
	Texts Texts `json:"texts"` // the best first
}

// Texts are the texts that a search has found.
type Texts []FoundText

// UnmarshalJSON reads one more than may be asked for, so that a list that is too long can be told.
func (t *Texts) UnmarshalJSON(list []byte) (err error) {
	*t, err = first[FoundText](list, domain.MaxFoundTexts+1)
	return err
}

// FoundText is a story whose text contains what was searched for.
type FoundText struct {
	StoryID   string  `json:"story_id"`
	StoryName string  `json:"story_name"`
	Stage     string  `json:"stage"`
	Heading   *string `json:"heading"` // under which the excerpt is
	Excerpt   string  `json:"excerpt"`
	Whole     bool    `json:"whole"` // the words are one after the other
}
