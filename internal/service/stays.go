package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"switchyard/internal/domain"
)

type stayStore interface {
	StaysUpTo(ctx context.Context) (id int64, err error)
	RecentStays(ctx context.Context, since time.Time, limit int) ([]domain.Stay, error)
	ProjectStays(ctx context.Context, project string, since time.Time, limit int) ([]domain.Stay, error)
	Stays(ctx context.Context, project, storyID string, limit int) ([]domain.Stay, error)
	SaveStays(ctx context.Context, c domain.StayChanges) error
}

const (
	// stayMemory and maxRecentStays bound what is kept of ended stays in memory.
	stayMemory     = 90 * 24 * time.Hour
	maxRecentStays = 200_000
	// saveInterval is how long what became of stays waits to be written. What a crash loses is found again in the stream and
	// in the pipelines.
	saveInterval = time.Second
	// maxUnsaved is how many changes are written at once while the stream is being caught up with.
	maxUnsaved = 5000
	// catchUpPatience is how long a reader waits until everything in the stream is accounted for. The first time that takes
	// about 10 µs for each event, later only what is new counts.
	catchUpPatience = 100 * time.Millisecond
)

// Stays are where the stories of all projects are and have been, by the stream and by what pipelines show.
type Stays struct {
	store    stayStore
	events   *Events
	projects *Projects

	catching struct { // the reading of what is new in the stream, one at a time
		sync.Mutex
		done chan struct{} // closed at its end; nil while none is under way
		err  error         // of the last one
	}

	mu        sync.Mutex
	loaded    bool
	upTo      int64 // the id up to which events are accounted for
	day       int   // when moves were forgotten last
	byProject map[string]*domain.StageHistory
	names     map[storyID]string // of stories that pipelines showed, to be saved
	changed   map[string]bool    // projects with stays to be saved
	unsaved   int                // events since the last save
	saved     int64              // upTo when it was saved last
	forgotten map[string]bool    // projects of which there is more in the store than in memory
	registry  *domain.Registry   // whose other projects were forgotten last
}

func newStays(store stayStore, events *Events, projects *Projects) *Stays {
	return &Stays{
		store: store, events: events, projects: projects, byProject: map[string]*domain.StageHistory{},
		names: map[storyID]string{}, changed: map[string]bool{}, forgotten: map[string]bool{},
	}
}

// of returns a project's history. Callers hold mu.
func (s *Stays) of(project string) *domain.StageHistory {
	h := s.byProject[project]
	if h == nil {
		h = &domain.StageHistory{}
		s.byProject[project] = h
	}
	return h
}

// catchUp returns when everything in the stream is accounted for, true, or when that takes too long.
func (s *Stays) catchUp(ctx context.Context) (done bool, err error) {
	s.mu.Lock()
	current := s.loaded && s.upTo >= s.events.LastID()
	s.mu.Unlock()
	if current {
		return true, nil
	}
	c := &s.catching
	c.Lock()
	if c.done == nil {
		c.done = make(chan struct{})
		go s.read(context.WithoutCancel(ctx))
	}
	ended := c.done
	c.Unlock()
	late := time.NewTimer(catchUpPatience)
	defer late.Stop()
	select {
	case <-ended:
		c.Lock()
		defer c.Unlock()
		return c.err == nil, c.err
	case <-late.C:
		return false, nil
	}
}

// read accounts for what is new in the stream.
func (s *Stays) read(ctx context.Context) {
	var err error
	defer func() {
		if cause := recover(); cause != nil { // whoever waits reports it
			err = fmt.Errorf("panic: %v", cause)
		}
		c := &s.catching
		c.Lock()
		defer c.Unlock()
		c.err = err
		close(c.done)
		c.done = nil
	}()
	if err = s.load(ctx); err != nil {
		return
	}
	for more := true; more && err == nil; {
		var page domain.EventPage
		if page, err = s.events.Page(ctx, domain.EventQuery{After: s.position(), Limit: 1000}); err != nil {
			return
		}
		projects := map[string]bool{}
		for _, e := range page.Events {
			projects[e.Project] = true
		}
		if err = s.remember(ctx, projects); err != nil {
			return
		}
		if s.add(page.Events) >= maxUnsaved {
			err = s.save(ctx)
		}
		more = page.More
	}
}

func (s *Stays) position() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.upTo
}

// load takes in what was saved.
func (s *Stays) load(ctx context.Context) error {
	s.mu.Lock()
	loaded := s.loaded
	s.mu.Unlock()
	if loaded {
		return nil
	}
	upTo, err := s.store.StaysUpTo(ctx)
	if err != nil {
		return err
	}
	stays, err := s.store.RecentStays(ctx, time.Now().Add(-stayMemory), maxRecentStays)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stay := range stays {
		s.of(stay.Project).Restore(stay)
	}
	s.upTo, s.saved, s.loaded = upTo, upTo, true
	return nil
}

// add accounts for events. It returns how many are not saved.
func (s *Stays) add(events []domain.Event) int {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if day := now.YearDay(); day != s.day {
		s.day = day
		for _, h := range s.byProject {
			h.Forget(now)
		}
	}
	for _, e := range events {
		s.of(e.Project).Add(e, now)
		s.changed[e.Project], s.upTo = true, e.ID
		s.unsaved++
	}
	return s.unsaved
}

// observe takes in what a project's pipeline showed that was asked for then, unless it is the one that was observed last. It
// returns the one that is observed now: answer is to be observed again while newer events contradict it.
func (s *Stays) observe(project string, answer, observed *domain.PipelineAnswer, asked time.Time) *domain.PipelineAnswer {
	if answer == observed || answer.EventsOnly {
		return observed
	}
	ctx := context.Background()
	if done, err := s.catchUp(ctx); !done || err != nil {
		return observed
	}
	if err := s.remember(ctx, map[string]bool{project: true}); err != nil {
		return observed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.of(project)
	before := h.Version()
	settled := h.Observe(project, answer.Stages, answer.Note == "", asked, time.Now())
	if h.Version() != before {
		s.changed[project] = true
		for _, stage := range answer.Stages {
			for _, item := range stage.Items {
				s.names[storyID{project, item.StoryID}] = item.StoryName
			}
		}
	}
	if settled {
		return answer
	}
	return observed
}

// forget gives back the memory of projects that are gone. What was saved of them stays in the store.
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
			s.forgotten[project] = true
		}
	}
}

// remember takes in again what was saved of those of these projects that were forgotten.
func (s *Stays) remember(ctx context.Context, projects map[string]bool) error {
	for project := range projects {
		s.mu.Lock()
		forgotten := s.forgotten[project]
		s.mu.Unlock()
		if !forgotten {
			continue
		}
		stays, err := s.store.ProjectStays(ctx, project, time.Now().Add(-stayMemory), maxRecentStays)
		if err != nil {
			return err
		}
		s.mu.Lock()
		if s.forgotten[project] {
			delete(s.forgotten, project)
			for _, stay := range stays {
				s.of(project).Restore(stay)
			}
		}
		s.mu.Unlock()
	}
	return nil
}

// save writes what changed.
func (s *Stays) save(ctx context.Context) error {
	s.mu.Lock()
	c := domain.StayChanges{UpTo: s.upTo}
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
	unchanged := c.UpTo == s.saved && len(c.Save)+len(c.Drop)+len(c.Stories) == 0
	s.changed, s.names, s.unsaved = map[string]bool{}, map[storyID]string{}, 0
	s.mu.Unlock()
	if unchanged {
		return nil
	}
	err := s.store.SaveStays(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.saved = c.UpTo
		return nil
	}
	for _, story := range c.Stories { // to be tried again, unless it changed meanwhile
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

// Run follows the stream and saves what becomes of stays, until ctx ends. It returns an error when the store failed;
// nothing is lost when it is run again.
func (s *Stays) Run(ctx context.Context) error {
	tick := time.NewTicker(saveInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := s.catchUp(ctx); err != nil && ctx.Err() == nil {
				return err
			}
			if err := s.save(ctx); err != nil && ctx.Err() == nil {
				return err
			}
			s.forget()
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalSave)
			defer cancel()
			return s.save(last)
		}
	}
}

// StuckLimit returns after how long in a stage of work a story of the project needs somebody.
func (s *Stays) StuckLimit(project, stage string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(project).StuckLimit(stage, time.Now())
}

// maxStays is how many stays of a story are shown.
const maxStays = 500

// Of returns the stays of a story, the first of them first, without those of which the arrival is not known. Blocked is how
// long the story was blocked in each until now.
func (s *Stays) Of(ctx context.Context, project, id string) ([]domain.Stay, error) {
	if _, err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	stored, err := s.store.Stays(ctx, project, id, maxStays)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var stays []domain.Stay
	for _, stay := range s.of(project).Newer(id, stored) {
		if stay.Stage != "" && !stay.From.IsZero() {
			stay.Blocked = stay.BlockedFor(time.Now())
			stays = append(stays, stay)
		}
	}
	return stays, nil
}

// version returns the number of changes of a project's history. Callers hold mu.
func (s *Stays) version(project string) uint64 {
	if h := s.byProject[project]; h != nil {
		return h.Version()
	}
	return 0
}
