package service

import (
	"context"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// QueuedReads returns how many reads wait to be stored.
func QueuedReads(s *Service) int {
	s.Events.mu.Lock()
	defer s.Events.mu.Unlock()
	return len(s.Events.queue)
}

// TailSize returns how much of the stream is in memory.
func TailSize(s *Service) (events, bytes int) {
	t := s.Events.tail.Load()
	for _, e := range t.events {
		bytes += len(e.JSON)
	}
	return len(t.events), bytes
}

// SaveBeats stores pending heartbeats.
func SaveBeats(ctx context.Context, s *Service) error { return s.Agents.table.save(ctx, true) }

// SaveStays stores changed stays, and the moves of all projects.
func SaveStays(ctx context.Context, s *Service) error {
	if err := s.Stays.save(ctx); err != nil {
		return err
	}
	return s.Stays.saveMoves(ctx, 0)
}

// SaveStaysAlone stores changed stays only.
func SaveStaysAlone(ctx context.Context, s *Service) error { return s.Stays.save(ctx) }

// NextSnapshot takes a snapshot at once, however recent the last one is.
func NextSnapshot(ctx context.Context, s *Service) *Snapshot {
	s.Overview.mu.Lock()
	s.Overview.age = 0
	s.Overview.mu.Unlock()
	return s.Overview.Snapshot(ctx)
}

// TickStays does what Stays.Run does each second.
func TickStays(ctx context.Context, s *Service) error {
	s.Stays.checkDuty()
	for done := false; !done; { // a page would not wait longer on a slow machine; a test does
		var err error
		if done, err = s.Stays.catchUp(ctx); err != nil {
			return err
		}
	}
	return s.Stays.flush(ctx)
}

// LoseStore marks the store as unreachable until it is read again.
func LoseStore(s *Service) { s.Events.reached.note(0, context.DeadlineExceeded) }

// SplitMoves makes pieces of moves as small as this.
func SplitMoves(s *Service, size int) { s.Stays.pieceSize = size }

// Charts returns the charts of these pipelines, as they are derived for boards.
func Charts(ctx context.Context, s *Service, pipelines []domain.ProjectPipeline) ([]domain.Charts, error) {
	charts := make([]domain.Charts, len(pipelines))
	for i, p := range pipelines {
		visits, err := s.Stays.Project(ctx, p.Project)
		if err != nil {
			return charts, err
		}
		if len(p.Stages) > 0 {
			charts[i] = visits.Charts(p.Stages, clock.Now())
		}
	}
	return charts, nil
}
