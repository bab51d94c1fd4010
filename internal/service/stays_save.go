package service

import (
	"context"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// forget frees the memory of removed projects. Their saved stays are kept in the store.
func (s *Stays) forget() {
	registry := s.projects.Registry()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.registry == registry {
		return
	}
	s.registry = registry
	for project := range s.byProject {
		if _, registered := registry.Find(project); !registered && !s.changed[project] {
			delete(s.byProject, project)
			delete(s.complete, project)
			delete(s.movesOnly, project)
			s.revision++
		}
	}
	for project := range s.unread {
		if _, registered := registry.Find(project); !registered {
			delete(s.unread, project)
			delete(s.complete, project)
			delete(s.movesOnly, project)
		}
	}
}

// remember reads the saved stays of those of the projects that are not completely in memory.
func (s *Stays) remember(ctx context.Context, projects map[string]bool) error {
	for project := range projects {
		if err := s.rememberProject(ctx, project); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stays) rememberProject(ctx context.Context, project string) error {
	s.mu.Lock()
	complete := s.complete[project]
	s.mu.Unlock()
	if complete {
		return nil
	}
	if err := s.readPiecesOf(ctx, map[string]bool{project: true}); err != nil {
		return err
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	s.mu.Lock()
	complete, movesOnly, generation := s.complete[project], s.movesOnly[project], s.generation
	s.mu.Unlock()
	if complete {
		return nil
	}
	stays, upTo, err := s.readStays(ctx, project, movesOnly)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation != generation || s.complete[project] || movesOnly != s.movesOnly[project] {
		return nil
	}
	s.complete[project] = true
	s.revision++
	delete(s.movesOnly, project)
	for _, stay := range stays {
		s.of(project).Restore(stay)
	}
	if upTo > s.upTo {
		s.covered[project] = upTo
	}
	return nil
}

// readStays returns the saved stays of a project and, if another gateway saves them, the last event that they cover.
func (s *Stays) readStays(ctx context.Context, project string, movesOnly bool) (stays []domain.Stay, upTo int64, err error) {
	s.mu.Lock()
	saving := s.duty.ours
	s.mu.Unlock()
	if !saving {
		if upTo, err = s.store.StaysUpTo(ctx); err != nil {
			return nil, 0, err
		}
	}
	for range 3 { // until the other gateway has not saved during the read
		if movesOnly {
			stays, err = s.store.LastingStays(ctx, project)
		} else {
			stays, err = s.store.ProjectStays(ctx, project, clock.Now().Add(-stayMemory), maxProjectStays)
		}
		if err != nil || saving {
			return stays, 0, err
		}
		before := upTo
		if upTo, err = s.store.StaysUpTo(ctx); err != nil || upTo == before {
			break
		}
	}
	return stays, upTo, err
}

// save stores changes.
func (s *Stays) save(ctx context.Context) error {
	s.mu.Lock()
	c := domain.StayChanges{UpTo: s.upTo, Token: s.duty.epoch}
	for project := range s.changed {
		h := s.of(project)
		save, drop := h.TakeChanges()
		for _, stay := range drop {
			stay.Project = project
			c.Drop = append(c.Drop, stay)
		}
		c.Save = append(c.Save, save...)
	}
	for key, name := range s.names {
		c.Stories = append(c.Stories, domain.StoryRef{Project: key.project, ID: key.id, Name: name})
	}
	c.ForgetMoves = s.moves.miss(c.Save)
	unchanged := c.UpTo == s.saved && len(c.Save)+len(c.Drop)+len(c.Stories) == 0
	s.changed, s.names, s.unsaved = map[string]bool{}, map[storyID]string{}, 0
	s.mu.Unlock()
	if unchanged {
		return nil
	}
	if c.ForgetMoves {
		_ = s.readAllPieces(ctx) // if it fails, moves are read from stays, which takes longer
	}
	err := s.store.SaveStays(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.saved = c.UpTo
		if c.ForgetMoves {
			s.moves.before = time.Time{}
			s.moves.savedAt = time.Now().Add(movesDelay - movesInterval) // soon, but once for many of them
		}
		return nil
	}
	for _, story := range c.Stories { // save the names again, unless they have changed since
		key := storyID{story.Project, story.ID}
		if _, newer := s.names[key]; !newer {
			s.names[key] = story.Name
		}
	}
	for _, stay := range c.Save {
		s.of(stay.Project).Unsaved(stay, false)
		s.changed[stay.Project] = true
	}
	for _, stay := range c.Drop {
		s.of(stay.Project).Unsaved(stay, true)
		s.changed[stay.Project] = true
	}
	return err
}

// Run follows the stream, and saves stays while that is this gateway's duty, until ctx ends. It returns an error when the store
// failed; nothing is lost if it is run again.
func (s *Stays) Run(ctx context.Context) error {
	tick := time.NewTicker(saveInterval)
	defer tick.Stop()
	for {
		position := s.position()
		if err := s.round(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if s.position() != position {
			tick.Reset(busySaveInterval)
		} else {
			tick.Reset(saveInterval)
		}
		select {
		case <-tick.C:
		case <-s.leader.Changed():
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalSave)
			defer cancel()
			if err := s.flush(last); err != nil {
				return err
			}
			return s.flushMoves(last, 0)
		}
	}
}

// round reads new events and saves the changes.
func (s *Stays) round(ctx context.Context) error {
	s.checkDuty()
	if _, err := s.catchUpWithin(ctx, saveInterval); err != nil {
		return err
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	s.forget()
	return s.flushMoves(ctx, movesInterval)
}
