package service

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

const (
	// movesInterval is how often the moves of all projects are stored in one piece, if there are new ones. Reading that piece takes
	// a hundredth of the time that reading their stays takes: 100,000 in about 10 ms.
	movesInterval = 10 * time.Minute
	// movesDelay is how old a move must be to be stored so: a younger one may still be corrected.
	movesDelay = time.Minute
	// maxSavedMoves is how many are stored in one piece, divided among the projects, but at least minSavedMoves of each.
	maxSavedMoves, minSavedMoves = 500_000, 50
)

// savedMoves are the moves that are stored in one piece. Stays.mu guards them.
type savedMoves struct {
	before   time.Time // all of them are earlier; zero when none are stored
	savedAt  time.Time
	revision uint64 // of stays when they were stored
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

// saveMoves stores the moves of all projects in one piece, unless that was done recently or nothing has changed. Changes of stays
// must have been saved before.
func (s *Stays) saveMoves(ctx context.Context, interval time.Duration) error {
	now := time.Now()
	s.mu.Lock()
	revision := s.revision
	current := s.loaded && s.upTo >= s.events.LastID() && len(s.changed) == 0 && len(s.byProject) > 0
	if !current || now.Sub(s.moves.savedAt) < interval || revision == s.moves.revision && !s.moves.before.IsZero() {
		s.mu.Unlock()
		return nil
	}
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

// movesFormat begins what is stored.
const movesFormat = 4

// unreadHistory is what was stored of a project and not decoded yet. Decoding that of all projects takes a while, for which the
// page of one should not wait (make bench, "first look at a project and its charts").
type unreadHistory struct {
	moves []byte
	stays []domain.Stay // after these
}

// encodeMoves encodes the moves before a time, of all projects that memory has whole. Callers hold mu.
func (s *Stays) encodeMoves(before time.Time) []byte {
	projects := len(s.complete) + len(s.movesOnly)
	each := max(minSavedMoves, maxSavedMoves/max(1, projects))
	encoded := binary.AppendUvarint([]byte{movesFormat}, uint64(projects))
	for _, projects := range []map[string]bool{s.complete, s.movesOnly} {
		for project := range projects {
			moves := s.of(project).AppendMoves(nil, before, each)
			encoded = append(binary.AppendUvarint(domain.AppendString(encoded, project), uint64(len(moves))), moves...)
		}
	}
	return encoded
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
	_, err = s.recalling.do(catchUpPatience, func() error { return s.remember(context.WithoutCancel(ctx), projects) })
	return isKnown(), err
}

// hasMoves reports whether memory has the moves of a project. Callers hold mu.
func (s *Stays) hasMoves(project string) bool { return s.complete[project] || s.movesOnly[project] }

// loadMoves reads the moves that are stored in one piece, the newer ones of the same projects, and their lasting stays. Other
// projects are read when they are needed.
func (s *Stays) loadMoves(ctx context.Context) error {
	before, encoded, err := s.store.Moves(ctx)
	if domain.CodeOf(err) == domain.NotFound || err == nil && (len(encoded) == 0 || encoded[0] != movesFormat) {
		return nil
	}
	if err != nil {
		return err
	}
	unread, err := splitMoves(encoded[1:])
	if err != nil {
		return nil // the stays that it was made from are stored as well
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byProject, s.unread = map[string]*domain.StageHistory{}, unread
	for project := range unread {
		s.movesOnly[project] = true
	}
	for _, stay := range newer {
		if u := unread[stay.Project]; u != nil {
			u.stays = append(u.stays, stay)
		}
	}
	s.moves.before, s.moves.savedAt = before, time.Now()
	if !saving || len(lasting) > maxLastingStays {
		return nil
	}
	for _, stay := range lasting {
		if u := unread[stay.Project]; u != nil {
			u.stays = append(u.stays, stay)
		}
	}
	s.complete, s.movesOnly = s.movesOnly, map[string]bool{}
	return nil
}

var errShortMoves = errors.New("moves that were saved are cut off")

// splitMoves returns what is stored of each project.
func splitMoves(b []byte) (map[string]*unreadHistory, error) {
	n, b, err := domain.CutNumber(b)
	if err != nil {
		return nil, err
	}
	unread := map[string]*unreadHistory{}
	for range n {
		var project string
		if project, b, err = domain.CutString(b); err != nil {
			return nil, err
		}
		var length uint64
		if length, b, err = domain.CutNumber(b); err != nil || length > uint64(len(b)) {
			return nil, errors.Join(errShortMoves, err)
		}
		unread[project], b = &unreadHistory{moves: b[:length]}, b[length:]
	}
	return unread, nil
}

// takeIn decodes what was stored of a project. If that fails, the stays that it was made from are read when they are needed.
// Callers hold mu.
func (s *Stays) takeIn(h *domain.StageHistory, project string) {
	u := s.unread[project]
	delete(s.unread, project)
	if _, err := h.RestoreMoves(u.moves); err != nil {
		*h = domain.StageHistory{}
		delete(s.complete, project)
		delete(s.movesOnly, project)
		return
	}
	for _, stay := range u.stays {
		h.Restore(stay)
	}
}
