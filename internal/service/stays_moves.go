package service

import (
	"context"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

const (
	// movesInterval is how often the moves of all projects are stored together, if there are new ones. Reading them back takes a
	// hundredth of the time of reading the stays: 100,000 in about 10 ms.
	movesInterval = 10 * time.Minute
	// movesDelay is how old a move must be to be included: a younger one may still be corrected.
	movesDelay = time.Minute
	// maxSavedMoves is how many are included, divided among the projects, but at least minSavedMoves of each.
	maxSavedMoves, minSavedMoves = 500_000, 50
)

// savedMoves describes the moves that are stored together. Stays.mu guards it.
type savedMoves struct {
	before   time.Time // all of them are earlier; zero if none are stored
	savedAt  time.Time
	revision uint64 // of stays when they were stored
	unread   unreadPieces
}

// miss reports whether any stay to be saved ended within the time that the stored moves cover.
func (m savedMoves) miss(saved []domain.Stay) bool {
	for _, stay := range saved {
		if !stay.To.IsZero() && stay.To.Before(m.before) {
			return true
		}
	}
	return false
}

// saveMoves stores the moves of all projects together, unless that was done recently or nothing has changed. Changed stays must
// have been saved before.
func (s *Stays) saveMoves(ctx context.Context, interval time.Duration) error {
	now := time.Now()
	s.mu.Lock()
	due := s.movesDue(now, interval)
	s.mu.Unlock()
	if !due {
		return nil
	}
	if err := s.readAllPieces(ctx); err != nil { // moves that are not in memory would be lost
		return err
	}
	s.mu.Lock()
	if !s.movesDue(now, interval) {
		s.mu.Unlock()
		return nil
	}
	revision := s.revision
	before := clock.Of(now).Add(-movesDelay)
	encoded := s.encodeMoves(before)
	s.moves.savedAt = now
	s.mu.Unlock()
	if err := s.store.SaveMoves(ctx, before, encoded); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves.before, s.moves.revision = before, revision
	return nil
}

// movesDue reports whether it is time to store moves. The caller holds mu.
func (s *Stays) movesDue(now time.Time, interval time.Duration) bool {
	current := s.loaded && s.upTo >= s.events.LastID() && len(s.changed) == 0 && len(s.byProject) > 0
	return current && now.Sub(s.moves.savedAt) >= interval && (s.revision != s.moves.revision || s.moves.before.IsZero())
}

// recallMoves reads the moves, if they are not in memory, of those projects whose stages are known, unless that takes too long.
func (s *Stays) recallMoves(ctx context.Context, pipelines []domain.ProjectPipeline) error {
	unknown := map[string]bool{}
	s.mu.Lock()
	for _, p := range pipelines {
		if len(p.Stages) > 0 && !s.hasMoves(p.Project) {
			unknown[p.Project] = true
		}
	}
	s.mu.Unlock()
	if len(unknown) == 0 {
		return nil
	}
	_, err := s.recall(ctx, unknown)
	return err
}

// recall is remember with a time limit for pages. It reports whether all of the projects are in memory now.
func (s *Stays) recall(ctx context.Context, projects map[string]bool) (known bool, err error) {
	isKnown := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for project := range projects {
			if !s.complete[project] {
				return false
			}
		}
		return true
	}
	if isKnown() {
		return true, nil
	}
	if err := s.readPiecesOf(context.WithoutCancel(ctx), projects); err != nil || isKnown() {
		return err == nil, err
	}
	_, err = s.recalling.do(catchUpPatience, func() error { return s.remember(context.WithoutCancel(ctx), projects) })
	return isKnown(), err
}

// hasMoves reports whether a project's moves are in memory. The caller holds mu.
func (s *Stays) hasMoves(project string) bool { return s.complete[project] || s.movesOnly[project] }

// loadMoves prepares for reading the moves that are stored together: it reads the stays that have ended since, and the current ones.
// The moves themselves are read when needed.
func (s *Stays) loadMoves(ctx context.Context) error {
	before, pieces, err := s.store.Moves(ctx)
	if domain.CodeOf(err) == domain.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	newer, err := s.store.RecentStays(ctx, before, maxRecentStays)
	if err != nil {
		return err
	}
	s.mu.Lock()
	saving := s.duty.ours
	s.mu.Unlock()
	var lasting []domain.Stay
	if saving { // otherwise another gateway may change them
		if lasting, err = s.store.AllLastingStays(ctx, maxLastingStays+1); err != nil {
			return err
		}
	}
	whole := saving && len(lasting) <= maxLastingStays
	if !whole {
		lasting = nil
	}
	s.mu.Lock()
	s.byProject, s.unread = map[string]*domain.StageHistory{}, map[string]*unreadHistory{}
	s.moves.before, s.moves.savedAt, s.moves.unread = before, time.Now(), newUnreadPieces(pieces, whole, append(newer, lasting...))
	s.mu.Unlock()
	if isAlone(s.leader) {
		return nil
	}
	return s.readAllPieces(ctx) // another gateway may soon replace them
}
