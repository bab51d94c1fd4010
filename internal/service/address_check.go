package service

import (
	"context"

	"switchyard/internal/domain"
)

// CheckAddress finds out whether a project server answers at an address that somebody is about to register; nothing is stored.
// It returns Invalid for what cannot be a project's address, and BadGateway with the reason where no project server answers.
func (s *Pipelines) CheckAddress(ctx context.Context, url string, token *domain.Secret) (*domain.PipelineAnswer, error) {
	p, err := newProject("?", url, token)
	if err != nil {
		return nil, err
	}
	p.Name = "" // it has none yet
	return s.servers.Pipeline(ctx, p, nil)
}
