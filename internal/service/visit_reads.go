package service

import (
	"context"
	"maps"
	"slices"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// Project returns a project's visits. It returns Unavailable if reading them takes too long.
func (s *visitTable) Project(ctx context.Context, project string) (*domain.ProjectVisits, error) {
	if err := s.Load(ctx, project); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state(project)
	if state.settle(); state.known == nil {
		return nil, domain.Errorf(domain.Unavailable, "the stage history is being read")
	}
	return state.known, nil
}

// Load reads those visits that are not in memory, and waits for that for a short while. It returns an error if a read
// failed.
func (s *visitTable) Load(ctx context.Context, projects ...string) error {
	var reads []*visitState
	s.mu.Lock()
	for _, project := range projects {
		state := s.state(project)
		if state.known != nil {
			continue
		}
		if state.read == nil {
			state.read = make(chan struct{})
			s.wanted = append(s.wanted, project)
		}
		reads = append(reads, state)
	}
	if len(s.wanted) > 0 && !s.reading {
		s.reading = true
		supervise.Go(s.log, "visits", s.readWanted)
	}
	s.mu.Unlock()
	late := time.After(visitPatience)
	for _, state := range reads {
		s.mu.Lock()
		read := state.read
		s.mu.Unlock()
		if read != nil {
			select {
			case <-read:
			case <-late:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		s.mu.Lock()
		err := state.err
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// readWanted reads what is wanted until nothing is, the last wanted first: all are wanted by the overview, one by its
// own page.
func (s *visitTable) readWanted() {
	for {
		s.mu.Lock()
		from := max(0, len(s.wanted)-readAtOnce)
		projects := s.wanted[from:len(s.wanted):len(s.wanted)]
		s.wanted = s.wanted[:from:from]
		s.reading = len(projects) > 0
		generation := s.generation
		s.mu.Unlock()
		if len(projects) == 0 {
			return
		}
		var found map[string]*domain.ProjectVisits
		err := supervise.Call(func() (err error) {
			found, err = s.store.ProjectVisits(context.Background(), projects, clock.Now())
			return err
		})
		s.keep(projects, found, err, generation)
	}
}

// reread has the visits of projects read again: some have been removed, or changed in the middle.
func (s *visitTable) reread(projects ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, project := range projects {
		state := s.state(project)
		state.version++
		state.known, state.pending, state.again = nil, nil, state.read != nil
	}
}

// keep keeps what was read, unless memory has started anew since.
func (s *visitTable) keep(projects []string, found map[string]*domain.ProjectVisits, err error, generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation != generation {
		return
	}
	for _, project := range projects {
		state := s.byProject[project]
		if state.again && err == nil {
			state.again, s.wanted = false, append(s.wanted, project)
			continue
		}
		state.known, state.err = found[project], err
		if err != nil {
			state.pending = nil
		}
		close(state.read)
		state.read = nil
	}
}

// follow takes in what the leader has changed. Run by a reloader.
func (s *visitTable) follow(ctx context.Context) error {
	s.mu.Lock()
	s.turn()
	position, generation := s.position, s.generation
	s.mu.Unlock()
	if s.leader.Leads() {
		return nil
	}
	changed, replaced, next, err := s.changes.VisitsSince(ctx, position)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.turn()
	current := s.generation == generation
	if current {
		switch {
		case position == 0: // what has been read so far may lack changes
			replaced = slices.Collect(maps.Keys(s.byProject))
		case next < position: // a standby database that lacks the last transactions has taken over
			s.forget()
		}
		s.position = next
	}
	s.mu.Unlock()
	if current {
		s.apply(changed)
		s.reread(replaced...)
	}
	return nil
}
