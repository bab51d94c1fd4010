// Package sample is what a first run shows: four made-up projects with two weeks of history, and two build agents.
// Their stories move as long as somebody looks at the console.
package sample

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/files"
	"switchyard/internal/service"
)

// Sample is the sample of a gateway, there or not.
type Sample struct {
	// Ended is done as soon as the sample is being removed: nothing of it may run then.
	Ended context.Context
	end   context.CancelFunc

	crew
	store  State
	log    *slog.Logger
	failed bool          // a failure has been logged since somebody looked again
	seen   atomic.Int64  // when somebody looked last, in Unix nanoseconds
	looks  chan struct{} // somebody looks again

	mu    sync.Mutex // held while anything of the sample changes
	state state
}

// State is the part of the store that keeps what is known of the sample.
type State interface {
	State(ctx context.Context, key string) (string, error)
	SetState(ctx context.Context, key, value string) error
}

// state is what is stored. Whatever the process dies in between, the next start finishes.
type state struct {
	Born    time.Time `json:"born,omitzero"`     // when the sample was made; zero: there is none
	Served  bool      `json:"served,omitempty"`  // its projects have been registered
	Removed bool      `json:"removed,omitempty"` // it is to stay away
}

const stateKey = "sample_yard"

func Open(ctx context.Context, dir string, s *service.Service, store State, log *slog.Logger) (*Sample, error) {
	sample := &Sample{crew: crew{s, yard(dir)}, store: store, log: log, looks: make(chan struct{}, 1)}
	sample.Ended, sample.end = context.WithCancel(context.WithoutCancel(ctx))
	text, err := store.State(ctx, stateKey)
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &sample.state)
	}
	return sample, err
}

func (s *Sample) save(ctx context.Context, next state) error {
	text, err := json.Marshal(next)
	if err == nil {
		err = s.store.SetState(ctx, stateKey, string(text))
	}
	if err == nil {
		s.state = next
	}
	return err
}

// Exists reports whether there is a sample, or what is left of one.
func (s *Sample) Exists() bool { return !s.state.Born.IsZero() }

// Removed reports whether somebody has removed the sample, or all its projects.
func (s *Sample) Removed() bool {
	return s.state.Removed || s.state.Served && len(s.registered()) == 0
}

// Names returns the names of the sample's projects, whether they are there or not.
func Names() (names []string) {
	for _, p := range projects {
		names = append(names, p.name)
	}
	return names
}

func (c crew) registered() []string {
	return slices.DeleteFunc(Names(), func(name string) bool {
		_, found := c.service.Projects.Registry().Find(name)
		return !found
	})
}

// Make makes the sample unless it exists, and returns the names of the projects to be served, each from the directory
// of its name. It returns Conflict if somebody else's project has one of the names.
func (s *Sample) Make(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch names := s.registered(); {
	case s.state.Served:
		return names, nil
	case s.state.Born.IsZero() && len(names) > 0:
		return nil, domain.Errorf(domain.Conflict, "there is another project of the name %s", names[0])
	case s.state.Born.IsZero():
		if err := s.save(ctx, state{Born: time.Now()}); err != nil {
			return nil, err
		}
	}
	for i, p := range projects {
		if err := s.makeProject(ctx, p, rand.New(rand.NewPCG(1, uint64(i)))); err != nil {
			return nil, fmt.Errorf("sample: %w", err)
		}
	}
	return Names(), nil
}

// Registered notes that the projects have been registered.
func (s *Sample) Registered(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.save(ctx, state{Born: s.state.Born, Served: true})
}

// makeProject writes a project's files and records its past. Made again it is the same: its past goes by when the
// sample was born, and events that are known are not stored twice.
func (s *Sample) makeProject(ctx context.Context, p project, dice *rand.Rand) error {
	born, dir := s.state.Born, filepath.Join(string(s.yard), p.name)
	unfinished := dir + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	for _, stage := range stages {
		if err := files.MakePrivateDir(filepath.Join(unfinished, stage)); err != nil {
			return err
		}
	}
	read := domain.FeedRead{Cursor: domain.FeedCursor{Project: p.name}, ReceivedAt: born}
	for i, story := range p.stories {
		past := story.past(born.Add(-history+history*time.Duration(i)/time.Duration(len(p.stories))), born, dice.ExpFloat64)
		last := past[len(past)-1]
		path := filepath.Join(unfinished, stages[len(past)-1], p.id(i+1)+".md")
		if err := errors.Join(os.WriteFile(path, story.file(), 0o600), os.Chtimes(path, last, last)); err != nil {
			return err
		}
		records, err := story.records(p.id(i+1), past)
		if err != nil {
			return err
		}
		read.Records = append(read.Records, records...)
	}
	slices.SortFunc(read.Records, func(a, b domain.Record) int { return a.At.Compare(b.At) })
	if err := s.service.Events.Record(ctx, read); err != nil {
		return err
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) { // an earlier start got as far as this
		return errors.Join(err, os.RemoveAll(unfinished))
	}
	return os.Rename(unfinished, dir)
}

func (s story) records(id string, past []time.Time) (records []domain.Record, err error) {
	add := func(at time.Time, fields map[string]any) {
		fields["story_id"], fields["story_name"], fields["timestamp_ms"] = id, s.name, at.UnixMilli()
		text, failed := json.Marshal(fields)
		record, invalid := domain.ParseRecord(text)
		records, err = append(records, record), errors.Join(err, failed, invalid)
	}
	for i := range past[1:] {
		add(past[i+1], map[string]any{"type": domain.StageTransition, "from_stage": stages[i], "to_stage": stages[i+1]})
	}
	soon := past[len(past)-1].Add(5 * time.Minute)
	switch s.name {
	case asking:
		add(soon, map[string]any{"type": domain.StoryBlocked, "reason": prompt})
	case failing:
		add(soon, map[string]any{"type": domain.MergeFailure, "reason": conflict})
	}
	return records, err
}

// Remove removes the sample for good: projects, agents, files and history.
func (s *Sample) Remove(ctx context.Context) error {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.registered()
	if !s.Exists() {
		return nil
	}
	if err := s.save(ctx, state{Born: s.state.Born, Served: true, Removed: true}); err != nil {
		return err
	}
	for _, name := range names {
		if _, err := s.service.Projects.Remove(ctx, name); err != nil && domain.CodeOf(err) != domain.NotFound {
			return err
		}
	}
	for _, a := range s.service.Agents.All() {
		if isOurs(a) {
			if err := s.service.Agents.Remove(ctx, a.ID); err != nil && domain.CodeOf(err) != domain.NotFound {
				return err
			}
		}
	}
	for _, p := range projects {
		if err := s.service.Retention.Forget(ctx, p.name); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(string(s.yard)); err != nil {
		return err
	}
	return s.save(ctx, state{Removed: true})
}
