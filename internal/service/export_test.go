package service

import (
	"context"
	"time"

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

// NextSnapshot takes a snapshot at once, however recent the last one is.
func NextSnapshot(ctx context.Context, s *Service) *Snapshot {
	s.Overview.mu.Lock()
	s.Overview.age = 0
	s.Overview.mu.Unlock()
	return s.Overview.Snapshot(ctx)
}

// SpendObservations takes n stories from what may be stored of a project that no event tells of.
func SpendObservations(s *Service, project string, n int) {
	s.Visits.mu.Lock()
	defer s.Visits.mu.Unlock()
	s.Visits.state(project).credit.spend(n, observationBurst, time.Now())
}

// LoseStore marks the store as unreachable until it is read again.
func LoseStore(s *Service) { s.Events.reached.record(0, context.DeadlineExceeded) }

// Charts returns the charts of these pipelines, as they are derived for boards.
func Charts(ctx context.Context, s *Service, pipelines []domain.ProjectPipeline) ([]domain.Charts, error) {
	charts := make([]domain.Charts, len(pipelines))
	for i, p := range pipelines {
		visits, _, err := s.Visits.Project(ctx, p.Project)
		if err != nil {
			return charts, err
		}
		if len(p.Stages) > 0 {
			charts[i] = visits.Charts(domain.NewWorkflow("", p.Stages), clock.Now())
		}
	}
	return charts, nil
}

// RemoveExpired removes expired events and returns their number.
func RemoveExpired(ctx context.Context, s *Service) (int, error) {
	token, _ := s.Retention.leader.Token()
	return s.Retention.removeExpired(ctx, token)
}

// SpendMerges takes n visits from what a project's histories may change.
func SpendMerges(s *Service, project string, n int) { s.Histories.spend(project, n) }
