package service

import (
	"context"
	"encoding/json"

	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

// datedPipeline is a response with the known times of its items.
type datedPipeline struct {
	answer  *domain.PipelineAnswer
	version uint64 // of the project's history
	stages  []domain.Stage
	summary *domain.PipelineSummary // of stages
	raw     json.RawMessage
}

// date returns an answer with the times that are known now, or last if these have not changed. raw is its text, possibly dated
// before.
func (s *Stays) date(project string, answer *domain.PipelineAnswer, raw json.RawMessage, last datedPipeline) datedPipeline {
	_, _ = s.catchUp(context.Background()) // if it fails, times are updated by a later call
	s.mu.Lock()
	version := s.version(project)
	if last.answer == answer && last.version == version {
		s.mu.Unlock()
		return last
	}
	stages := s.of(project).Times(answer.Stages)
	s.mu.Unlock()
	summary := domain.Summarize(stages)
	return datedPipeline{answer: answer, version: version, stages: stages, summary: &summary, raw: wire.WithTimes(raw, stages)}
}
