package service

import (
	"context"
	"encoding/binary"
	"time"

	"switchyard/internal/domain"
)

const (
	// movesInterval is how often the moves of all projects are stored in one piece, if there are others. That is read in
	// a hundredth of the time that their stays take: 100,000 in about 10 ms.
	movesInterval = 10 * time.Minute
	// movesDelay is how old a move must be for that: a younger one may still be corrected.
	movesDelay = time.Minute
	// maxSavedMoves is how many are stored in one piece at most. Of more, those of fewer days are.
	maxSavedMoves = 500_000
)

// savedMoves are the moves that are stored in one piece. Stays.mu guards them.
type savedMoves struct {
	before  time.Time // they are those before then; zero when there are none
	savedAt time.Time
	version uint64 // the sum of those of all histories
}

// miss reports whether stays that are to be saved ended before the moves that are stored did.
func (m savedMoves) miss(saved []domain.Stay) bool {
	for _, stay := range saved {
		if !stay.To.IsZero() && stay.To.Before(m.before) {
			return true
		}
	}
	return false
}

// saveMoves stores the moves of all projects in one piece, unless that was done not long ago, or nothing has changed. What
// became of stays must be saved.
func (s *Stays) saveMoves(ctx context.Context, interval time.Duration) error {
	now := time.Now()
	s.mu.Lock()
	var version uint64
	for _, h := range s.byProject {
		version += h.Version()
	}
	current := s.loaded && s.upTo >= s.events.LastID() && len(s.changed) == 0 && len(s.byProject) > 0
	if !current || now.Sub(s.moves.savedAt) < interval || version == s.moves.version && !s.moves.before.IsZero() {
		s.mu.Unlock()
		return nil
	}
	before := now.Add(-movesDelay)
	encoded, ok := s.encodeMoves(now, before)
	s.moves.savedAt = now
	s.mu.Unlock()
	if !ok {
		return nil
	}
	if err := s.store.SaveMoves(ctx, before, encoded); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves.before, s.moves.version = before, version
	return nil
}

// movesFormat begins what is stored.
const movesFormat = 2

// encodeMoves returns the moves before a time of all projects of which memory has all, false where there are too many. Callers
// hold mu.
func (s *Stays) encodeMoves(now, before time.Time) (encoded []byte, ok bool) {
	for memory := time.Duration(stayMemory); memory >= 2*domain.ChartDays*24*time.Hour; memory /= 2 {
		since, n := now.Add(-memory), 0
		for _, h := range s.byProject {
			n += h.Moves(since, before)
		}
		if n > maxSavedMoves {
			continue
		}
		encoded = make([]byte, 0, 10*n+64*len(s.byProject))
		encoded = binary.AppendUvarint(append(encoded, movesFormat), uint64(len(s.complete)+len(s.movesOnly)))
		for _, projects := range []map[string]bool{s.complete, s.movesOnly} {
			for project := range projects {
				encoded = s.of(project).AppendMoves(domain.AppendString(encoded, project), since, before)
			}
		}
		return encoded, true
	}
	return nil, false
}

// loadMoves takes in the moves that are stored in one piece, and the newer ones of their projects. What lasts, and all of other
// projects, is taken in when it is needed.
func (s *Stays) loadMoves(ctx context.Context) error {
	before, encoded, err := s.store.Moves(ctx)
	if domain.CodeOf(err) == domain.NotFound || err == nil && (len(encoded) == 0 || encoded[0] != movesFormat) {
		return nil
	}
	if err != nil {
		return err
	}
	histories, err := decodeMoves(encoded[1:])
	if err != nil {
		return nil // what it was made from is in the store as well
	}
	newer, err := s.store.RecentStays(ctx, before, maxRecentStays)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byProject = histories
	for project := range histories {
		s.movesOnly[project] = true
	}
	for _, stay := range newer {
		if s.movesOnly[stay.Project] {
			s.of(stay.Project).Restore(stay)
		}
	}
	s.moves.before, s.moves.savedAt = before, time.Now()
	return nil
}

func decodeMoves(b []byte) (map[string]*domain.StageHistory, error) {
	n, b, err := domain.CutNumber(b)
	if err != nil {
		return nil, err
	}
	histories := map[string]*domain.StageHistory{}
	for range n {
		var project string
		if project, b, err = domain.CutString(b); err != nil {
			return nil, err
		}
		h := &domain.StageHistory{}
		if b, err = h.RestoreMoves(b); err != nil {
			return nil, err
		}
		histories[project] = h
	}
	return histories, nil
}
