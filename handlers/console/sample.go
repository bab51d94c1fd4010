package console

import (
	"path/filepath"
	"slices"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/views"
)

// Sample is the sample board of a first run. The overview explains it while it is the only project.
type Sample struct {
	Project string // its name, "" for no sample
	Dir     string // the directory of its stages
	Story   string // the story whose file the reader is invited to move
	From    string // the stage that it is in at first
	To      string
}

// firstSteps returns what the overview explains, nil when there is nothing to explain.
func (c *Console) firstSteps(s *service.Snapshot) *views.FirstSteps {
	sample := c.sample
	if len(s.Pipelines) != 1 || s.Pipelines[0].Project != sample.Project {
		return nil
	}
	isIn := func(stage domain.Stage) bool {
		return stage.Name == sample.From &&
			slices.ContainsFunc(stage.Items, func(i domain.Item) bool { return i.StoryID == sample.Story })
	}
	return &views.FirstSteps{
		Project: sample.Project,
		File:    filepath.Join(sample.Dir, sample.From, sample.Story+".md"),
		To:      filepath.Join(sample.Dir, sample.To),
		Moved:   !slices.ContainsFunc(s.Pipelines[0].Stages, isIn),
	}
}
