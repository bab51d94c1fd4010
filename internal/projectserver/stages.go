package projectserver

import (
	"time"

	"switchyard/internal/board"
	"switchyard/internal/web"
)

// pipelineJSON is the answer of /api/pipeline.
type pipelineJSON struct {
	Project string      `json:"project"`
	Stages  []stageJSON `json:"stages"`
}

type stageJSON struct {
	Name  string     `json:"name"`
	Items []itemJSON `json:"items"`
}

type itemJSON struct {
	StoryID      string  `json:"story_id"`
	StoryName    string  `json:"story_name"`
	Blocked      *string `json:"blocked"`
	MergeFailure *string `json:"merge_failure"`
	SinceMS      int64   `json:"since_ms"`
}

func newPipelineJSON(project string, stages []board.Stage) pipelineJSON {
	p := pipelineJSON{project, make([]stageJSON, len(stages))}
	for i, stage := range stages {
		items := make([]itemJSON, len(stage.Stories))
		for j := range stage.Stories {
			s := &stage.Stories[j]
			items[j] = itemJSON{s.ID, s.Name, web.OrNull(s.Blocked), web.OrNull(s.MergeFailure), unixMS(s.Since)}
		}
		p.Stages[i] = stageJSON{stage.Name, items}
	}
	return p
}

// unixMS is t in Unix milliseconds, 0 for what was before 1970.
func unixMS(t time.Time) int64 { return max(0, t.UnixMilli()) }
