package service

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

// askFirst begins to fetch a project if it is not current, ahead of projects that are asked later.
func (s *Pipelines) askFirst(project string, age pipelineAge) (registry *domain.Registry, state *pipelineState, awaited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setRegistry(s.projects.Registry())
	i, found := s.registry.Index(project)
	if !found {
		return s.registry, nil, false
	}
	return s.registry, s.states[i], s.askIfOld(s.states[i], age)
}

// one waits for a project as All does and returns its state, nil if there is no such project.
func (s *Pipelines) one(ctx context.Context, project string, age pipelineAge) (*domain.Registry, *pipelineState) {
	registry, state, awaited := s.askFirst(project, age)
	if awaited {
		s.waitFor(ctx, age, state)
	}
	return registry, state
}

// recentOf is Recent for one project. It returns NotFound.
func (s *Pipelines) recentOf(ctx context.Context, project string, maxAge time.Duration) (*domain.Registry, domain.ProjectPipeline, error) {
	age := s.recentAge(maxAge)
	registry, state := s.one(ctx, project, age)
	if state == nil {
		return nil, domain.ProjectPipeline{}, projectNotFound(project)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return registry, state.show(age), nil
}

// find returns a story and its stage from the project's last good response, nil if there is none. It fetches the pipeline and
// waits for it as All does.
func (s *Pipelines) find(ctx context.Context, project, story string) (item *domain.Item, stage string) {
	_, state := s.one(ctx, project, newestAge(0))
	if state == nil {
		return nil, ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if state.answer == nil {
		return nil, ""
	}
	for _, stage := range state.answer.Stages {
		for j := range stage.Items {
			if stage.Items[j].StoryID == story {
				return &stage.Items[j], stage.Name
			}
		}
	}
	return nil, ""
}
