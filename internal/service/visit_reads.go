package service

import (
	"context"
	"maps"
	"slices"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// Project returns a project's visits, at first only the newest, and their version. It returns Unavailable if reading
// them takes too long.
func (s *visitTable) Project(
	ctx context.Context, project string,
) (visits *domain.ProjectVisits, version uint64, err error) {
	err = s.Load(ctx, visitPatience, project)
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state(project)
	version = state.version
	if err != nil {
		return nil, version, err
	}
	if state.settle(); state.known == nil {
		return nil, version, domain.Errorf(domain.Unavailable, "the stage history is being read")
	}
	return state.known, version, nil
}

// LoadWhole is Load, but also waits for the rest of visits of which only the newest are known.
func (s *visitTable) LoadWhole(ctx context.Context, patience time.Duration, projects ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.Load(ctx, patience, projects...); err != nil && ctx.Err() == nil {
		return err
	}
	for _, project := range projects {
		s.mu.Lock()
		whole := s.state(project).whole
		s.mu.Unlock()
		if whole == nil {
			continue
		}
		select {
		case <-whole:
		case <-ctx.Done():
		}
	}
	return nil
}

// now returns what is in memory of a project's visits, none before they have been read, and their version.
func (s *visitTable) now(project string) (*domain.ProjectVisits, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state(project)
	if state.settle(); state.known == nil {
		return domain.NewProjectVisits(nil, nil), state.version
	}
	return state.known, state.version
}

// Load reads visits that are not in memory, and waits for that for at most patience. It returns an error if a read
// failed.
func (s *visitTable) Load(ctx context.Context, patience time.Duration, projects ...string) error {
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
	late := time.After(patience)
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

// readWanted reads until nothing is wanted, newest request first: the overview wants all, a project's page only its
// own.
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
		found, err := s.fetch(projects, newestVisits)
		s.keep(projects, found, err, generation)
	}
}

func (s *visitTable) fetch(projects []string, newest int) (found map[string]*domain.ProjectVisits, err error) {
	err = supervise.Call(func() (err error) {
		found, err = s.store.ProjectVisits(context.Background(), projects, newest)
		return err
	})
	return found, err
}

// complete reads all visits of a project of which only the newest are known, and then closes whole.
func (s *visitTable) complete(project string, state *visitState, whole chan struct{}) {
	s.completing.Lock() // one project at a time
	defer s.completing.Unlock()
	defer close(whole)
	s.mu.Lock()
	isMeant := state.whole == whole
	s.mu.Unlock()
	if !isMeant {
		return
	}
	found, err := s.fetch([]string{project}, maxKeptVisits)
	s.mu.Lock()
	defer s.mu.Unlock()
	if state.whole == whole { // nothing has been replaced meanwhile
		state.whole, state.known, state.err, state.applied = nil, found[project], err, 0 // read again after an error
		s.changed(state)
		state.settle()
	}
}

// reread has the visits of projects read again: some have been removed, or changed in the middle.
func (s *visitTable) reread(projects ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, project := range projects {
		state := s.state(project)
		s.changed(state)
		state.known, state.pending, state.applied, state.again, state.whole = nil, nil, 0, state.read != nil, nil
	}
}

// keep keeps what was read, unless memory has been emptied since.
func (s *visitTable) keep(projects []string, found map[string]*domain.ProjectVisits, err error, generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation != generation {
		return
	}
	for _, project := range projects {
		state := s.byProject[project]
		if state.removed {
			delete(s.byProject, project)
			state.again = false
		}
		if state.again && err == nil {
			state.again, s.wanted = false, append(s.wanted, project)
			continue
		}
		state.known, state.err, state.applied = found[project], err, 0
		if s.changed(state); err != nil {
			state.pending = nil
		} else if !state.known.Whole {
			whole := make(chan struct{})
			state.whole = whole
			supervise.Go(s.log, "visits", func() { s.complete(project, state, whole) })
		}
		close(state.read)
		state.read = nil
	}
}

// follow takes in what the leader has changed. A reloader runs it.
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
		case next < position: // a standby database without the last transactions has taken over
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
