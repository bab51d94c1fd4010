package service

import (
	"context"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

const (
	// movesInterval is how often the moves of all projects are stored together, if there are new ones. Reading these takes
	// a hundredth of the time that reading their stays takes: 100,000 in about 10 ms.
	movesInterval = 10 * time.Minute
	// movesDelay is how old a move must be to be stored so: a younger one may still be corrected.
	movesDelay = time.Minute
	// maxSavedMoves is how many are stored so, divided among the projects, but at least minSavedMoves of each.
	maxSavedMoves, minSavedMoves = 500_000, 50
)

// savedMoves are the moves that are stored together. Stays.mu guards them.
type savedMoves struct {
	before   time.Time // all of them are earlier; zero when none are stored
	savedAt  time.Time
	revision uint64 // of stays when they were stored
	unread   unreadPieces
}

// miss reports whether stays that are to be saved ended within the time that the stored moves cover.
func (m savedMoves) miss(saved []domain.Stay) bool {
	for _, stay := range saved {
		if !stay.To.IsZero() && stay.To.Before(m.before) {
			return true
		}
	}
	return false
}

// saveMoves stores the moves of all projects together, unless that was done recently or nothing has changed. Changes of stays
// must have been saved before.
func (s *Stays) saveMoves(ctx context.Context, interval time.Duration) error {
	now := time.Now()
	s.mu.Lock()
	due := s.movesDue(now, interval)
	s.mu.Unlock()
	if !due {
		return nil
	}
	if err := s.readAllPieces(ctx); err != nil { // what memory does not have would be lost
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

// movesDue reports whether moves are to be stored. Callers hold mu.
func (s *Stays) movesDue(now time.Time, interval time.Duration) bool {
	current := s.loaded && s.upTo >= s.events.LastID() && len(s.changed) == 0 && len(s.byProject) > 0
	return current && now.Sub(s.moves.savedAt) >= interval && (s.revision != s.moves.revision || s.moves.before.IsZero())
}

// recallMoves reads the moves of those projects that have stages and are not in memory, unless that takes too long.
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

// recall does what remember does, but waits no longer than a page may. It reports whether memory now has all of these projects.
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

// hasMoves reports whether memory has the moves of a project. Callers hold mu.
func (s *Stays) hasMoves(project string) bool { return s.complete[project] || s.movesOnly[project] }

// loadMoves prepares for reading the moves that are stored together: it reads the stays that ended since, and the lasting ones. Other
// projects are read when they are needed.
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
	saving := s.saving
	s.mu.Unlock()
	var lasting []domain.Stay
	if saving { // otherwise another gateway may be changing them
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
	if isAlone(s.duties) {
		return nil
	}
	return s.readAllPieces(ctx) // soon others may store other moves
}
