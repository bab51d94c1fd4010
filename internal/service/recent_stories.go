package service

import (
	"context"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// Recent is Get for pages that refresh themselves: readers of a story at the same time share one call. The result must
// not be changed.
func (s *Stories) Recent(ctx context.Context, project, id string) (domain.Story, error) {
	calling := s.recent.DoChan(storyKey(project, id), func() (story any, err error) {
		err = supervise.Call(func() (err error) { // its callers report a panic
			// The call outlives the request that caused it, since others may wait for it. It ends within the limits of
			// StoryServers.
			story, err = s.Get(context.WithoutCancel(ctx), project, id)
			return err
		})
		return story, err
	})
	select {
	case result := <-calling:
		story, _ := result.Val.(domain.Story)
		return story, result.Err
	case <-ctx.Done():
		return domain.Story{}, ctx.Err()
	}
}

func storyKey(project, id string) string { return project + "/" + id }
