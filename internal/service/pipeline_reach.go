package service

import (
	"context"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

func (s *Pipelines) unreachable() map[string]trouble {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]trouble{}
	for _, state := range s.states {
		if state.err != nil {
			found[state.project.Name] = trouble{state.failed, domain.MessageOf(state.err)}
		}
	}
	return found
}

func (s *Pipelines) Reach() (all, unreachable int) {
	return len(s.projects.Registry().Projects), len(s.unreachable())
}

const (
	// probeInterval is how often a gateway that does not lead tries to reach the projects that the leader cannot reach, at
	// most maxProbes of them.
	probeInterval = 5 * time.Second
	maxProbes     = 16
)

// probe counts, until ctx ends, the projects that this gateway reaches and the leader does not.
func (s *Pipelines) probe(ctx context.Context, told *leaderNews) error {
	for supervise.Sleep(ctx, probeInterval) {
		news := told.now()
		if told.leader.Leads() {
			news.Unreachable = nil
		}
		tried, reached := 0, 0
		for _, project := range s.projects.Registry().Projects {
			if _, not := news.Unreachable[project.Name]; !not || tried == maxProbes {
				continue
			}
			tried++
			if _, err := s.servers.Pipeline(ctx, project, nil); err == nil {
				reached++
			}
		}
		s.reaches.Store(int64(reached * len(news.Unreachable) / max(tried, 1)))
	}
	return nil
}

// Reaches returns how many of the projects that the leader cannot reach this gateway reaches, as far as it has tried.
func (s *Pipelines) Reaches() int { return int(s.reaches.Load()) }
