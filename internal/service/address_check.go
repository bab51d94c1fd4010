package service

import (
	"context"

	"switchyard/internal/domain"
)

// CheckAddress fetches the pipeline from an address that is about to be registered, and stores nothing. It returns Invalid
// for an address that no project can have, and BadGateway with the reason when no project server responds there.
func (s *Pipelines) CheckAddress(ctx context.Context, url string, token *domain.Secret) (*domain.PipelineAnswer, error) {
	p, err := newProject("?", url, token)
	if err != nil {
		return nil, err
	}
	p.Name = "" // it has none yet
	return s.servers.Pipeline(ctx, p, nil)
}
