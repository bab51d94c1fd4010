package wire

import (
	"time"

	"switchyard/internal/domain"
)

// Pipeline is a project server's response at /api/pipeline.
type Pipeline struct {
	Project string  `json:"project"`
	Stages  []Stage `json:"stages"`
	Left    int     `json:"left,omitempty"` // how many more items it has than requested
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
	Blocked      *string `json:"blocked"`       // the reason, null if it is not blocked
	MergeFailure *string `json:"merge_failure"` // likewise
	SinceMS      int64   `json:"since_ms"`      // when it entered this stage
}

// Stages converts stages from their JSON form.
func Stages(list []Stage) []domain.Stage {
	stages := make([]domain.Stage, len(list))
	for i, stage := range list {
		items := make([]domain.Item, len(stage.Items))
		for j := range stage.Items {
			item := &stage.Items[j]
			items[j] = domain.Item{
				StoryID: item.StoryID, StoryName: item.StoryName, Blocked: reason(item.Blocked),
				MergeFailure: reason(item.MergeFailure),
				Since:        time.UnixMilli(min(max(item.SinceMS, 0), lastDate)),
			}
		}
		stages[i] = domain.Stage{Name: stage.Name, Items: items}
	}
	return stages
}

// lastDate is the end of the year 9999 in Unix milliseconds, the last that dates can represent.
const lastDate = 253402300799999

// reason returns why a story is blocked or its merge failed, "" for null.
func reason(text *string) string {
	if text != nil && *text == "" {
		return "no reason given"
	}
	return Text(text)
}
