package projectserver

import (
	"time"

	"switchyard/internal/board"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

func encodePipeline(project string, stages []board.Stage) wire.Pipeline {
	p := wire.Pipeline{Project: project, Stages: make([]wire.Stage, len(stages))}
	for i, stage := range stages {
		items := make([]wire.Item, len(stage.Stories))
		for j := range stage.Stories {
			s := &stage.Stories[j]
			items[j] = wire.Item{
				StoryID: s.ID, StoryName: s.Name, Blocked: web.OrNull(s.Blocked), MergeFailure: web.OrNull(s.MergeFailure), SinceMS: unixMS(s.Since),
			}
		}
		p.Stages[i] = wire.Stage{Name: stage.Name, Items: items}
	}
	return p
}

// unixMS is t in Unix milliseconds, 0 for what was before 1970.
func unixMS(t time.Time) int64 { return max(0, t.UnixMilli()) }
