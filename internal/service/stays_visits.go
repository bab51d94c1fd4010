package service

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

// projectVisits are the visits of one project's stories.
type projectVisits struct {
	stays   *Stays
	project string
}

// Version returns a number that grows with each change of a project's visits.
func (s *Stays) Version(project string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version(project)
}

// Project returns the visits of a project.
func (s *Stays) Project(ctx context.Context, project string) (projectVisits, error) {
	for {
		done, err := s.catchUp(ctx)
		if err != nil {
			return projectVisits{}, err
		}
		if err := s.events.Available(); err != nil {
			return projectVisits{}, err
		}
		if !done {
			continue
		}
		if err := s.recallMoves(ctx, []domain.ProjectPipeline{{Project: project, Stages: make([]domain.Stage, 1)}}); err != nil {
			return projectVisits{}, err
		}
		s.mu.Lock()
		has := s.hasMoves(project)
		s.mu.Unlock()
		if has {
			return projectVisits{s, project}, nil
		}
	}
}

func (v projectVisits) Times(stages []domain.Stage) []domain.Stage {
	v.stays.mu.Lock()
	defer v.stays.mu.Unlock()
	return v.stays.of(v.project).Times(stages)
}

func (v projectVisits) StuckLimit(stage string, now time.Time) time.Duration {
	v.stays.mu.Lock()
	defer v.stays.mu.Unlock()
	return v.stays.of(v.project).StuckLimit(stage, now)
}

func (v projectVisits) Charts(stages []domain.Stage, now time.Time) domain.Charts {
	v.stays.mu.Lock()
	defer v.stays.mu.Unlock()
	return v.stays.of(v.project).Charts(stages, now)
}
