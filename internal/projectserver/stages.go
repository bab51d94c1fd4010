package projectserver

import (
	"time"

	"switchyard/internal/board"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// encodePipeline returns the pipeline with the first items of its stages, at most most in all.
func encodePipeline(project string, stages []board.Stage, most int) wire.Pipeline {
	p := wire.Pipeline{Project: project, Stages: make([]wire.Stage, len(stages))}
	for i, stage := range stages {
		items := make([]wire.Item, min(len(stage.Stories), most))
		most -= len(items)
		p.Left += len(stage.Stories) - len(items)
		for j := range items {
			s := &stage.Stories[j]
			items[j] = wire.Item{
				StoryID: s.ID, StoryName: s.Name, Blocked: web.OrNull(s.Blocked), MergeFailure: web.OrNull(s.MergeFailure),
				SinceMS: unixMS(s.Since),
			}
		}
		p.Stages[i] = wire.Stage{Name: stage.Name, Items: items}
	}
	return p
}

func countStories(stages []board.Stage) (n int) {
	for _, stage := range stages {
		n += len(stage.Stories)
	}
	return n
}

// unixMS returns t in Unix milliseconds, 0 for times before 1970.
func unixMS(t time.Time) int64 { return max(0, t.UnixMilli()) }
