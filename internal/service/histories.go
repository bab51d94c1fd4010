package service

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// mergeBurst is how many changes a project's histories may make to its visits at once; after that, as many per second
// as observations.
const mergeBurst = 4 * domain.MaxMoves

// Histories merges a project's git history into its visits.
type Histories struct {
	store     *database
	visits    *Visits
	pipelines *Pipelines
}

// Last returns the id of the history that was merged last, "" for none. It returns Unavailable until it is known what
// is on the board.
func (s *Histories) Last(ctx context.Context, project domain.Project) (id string, err error) {
	if !s.pipelines.observed(project) {
		return "", domain.Errorf(domain.Unavailable, "the board is not known yet")
	}
	past, err := s.store.Past(ctx, project.Name)
	return past.ID, err
}

// Merge merges a history, given all of its moves, in place of the one before, under the leader's fencing token. It
// returns TooLarge while the project's histories change more than they may: the next one completes what is stored by
// then.
func (s *Histories) Merge(
	ctx context.Context, token int64, project domain.Project, id string, moves []domain.Move,
) error {
	now := clock.Milli()
	byStory := domain.MovesByStory(moves, now.Add(-visitLife), now)
	past := domain.Past{ID: id}
	for _, list := range byStory {
		past.Latest = append(past.Latest, list...)
		if past.Since.IsZero() || list[0].At.Before(past.Since) {
			past.Since = list[0].At
		}
	}
	slices.SortFunc(past.Latest, func(a, b domain.Move) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.StoryID, b.StoryID))
	})
	past.Latest = slices.Clone(past.Latest[max(0, len(past.Latest)-domain.LatestMoves):])
	known, err := s.store.GitStories(ctx, project.Name)
	if err != nil {
		return err
	}
	for _, story := range known {
		if _, still := byStory[story]; !still {
			byStory[story] = nil
		}
	}
	defer s.visits.reread(project.Name)
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(byStory)), observedAtOnce) {
		part := map[string][]domain.Move{}
		for _, story := range ids {
			part[story] = byStory[story]
		}
		err := step(ctx, 1, func() error {
			changed, err := s.store.MergeMoves(ctx, token, project.Name, part)
			if err == nil && !s.spend(project.Name, changed) {
				err = domain.Errorf(domain.TooLarge, "the history changes too much")
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.store.SavePast(ctx, token, project.Name, past, now)
}

func (s *Histories) spend(project string, changed int) bool {
	s.visits.mu.Lock()
	defer s.visits.mu.Unlock()
	return s.visits.state(project).merged.spend(changed, mergeBurst, time.Now())
}
