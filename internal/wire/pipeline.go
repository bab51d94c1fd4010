package wire

import (
	"time"

	"switchyard/internal/domain"
)

// Pipeline is a project server's answer at /api/pipeline.
type Pipeline struct {
	Project string  `json:"project"`
	Stages  []Stage `json:"stages"`
	Left    int     `json:"left,omitempty"` // how many items it has besides, where no more were asked for
}

// Stage is a stage of a pipeline with its stories.
type Stage struct {
	Name  string `json:"name"`
	Items []Item `json:"items"`
}

// Item is a story in a stage.
type Item struct {
	StoryID      string  `json:"story_id"`
	StoryName    string  `json:"story_name"`
	Blocked      *string `json:"blocked"`       // the reason, null when it is not blocked
	MergeFailure *string `json:"merge_failure"` // likewise
	SinceMS      int64   `json:"since_ms"`      // when it came into this stage
}

// Stages returns what the JSON of stages says.
func Stages(list []Stage) []domain.Stage {
	stages := make([]domain.Stage, len(list))
	for i, stage := range list {
		items := make([]domain.Item, len(stage.Items))
		for j := range stage.Items {
			item := &stage.Items[j]
			items[j] = domain.Item{
				StoryID: item.StoryID, StoryName: item.StoryName, Blocked: reason(item.Blocked), MergeFailure: reason(item.MergeFailure),
				Since: time.UnixMilli(min(max(item.SinceMS, 0), lastDate)),
			}
		}
		stages[i] = domain.Stage{Name: stage.Name, Items: items}
	}
	return stages
}

// lastDate is the end of the year 9999 in Unix milliseconds: what is later no date can say.
const lastDate = 253402300799999

// reason says why a story is in trouble; null is none.
func reason(text *string) string {
	if text != nil && *text == "" {
		return "no reason given"
	}
	return Text(text)
}
