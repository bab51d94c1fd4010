package service

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// Pipelines keeps the projects' pipelines and what is derived from them. It fetches them when a caller needs them, and
// when a project's feed reports a change.
type Pipelines struct {
	fetcher
	reaches atomic.Int64 // see Reaches
	last    *Boards
}

// CheckAddress fetches the pipeline from an address that is about to be registered, and stores nothing. It returns
// Invalid for an address that no project can have, and BadGateway with the reason if no project server responds there.
func (s *Pipelines) CheckAddress(
	ctx context.Context, url string, token *domain.Secret,
) (*domain.PipelineAnswer, error) {
	p, err := newProject("?", url, token)
	if err != nil {
		return nil, err
	}
	p.Name = "" // it has none yet
	return s.servers.Pipeline(ctx, p, nil)
}

// All returns the registry and every registered project's pipeline, ordered by name. A pipeline is current if its fetch
// began at most maxAge ago; others are fetched, and awaited for a short while.
func (s *Pipelines) All(ctx context.Context, maxAge time.Duration) (*domain.Registry, []domain.ProjectPipeline) {
	age := apiAge(maxAge)
	registry, states := s.update(ctx, age)
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := make([]domain.ProjectPipeline, len(states))
	for i, state := range states {
		shown[i] = state.show(age)
	}
	return registry, shown
}

// Board returns the board of one project like Boards, without asking any other. It returns NotFound.
func (s *Pipelines) Board(ctx context.Context, project string, maxAge time.Duration) (*domain.Registry, Board, error) {
	age := pageAge(maxAge, len(s.projects.Registry().Projects))
	registry, state, err := s.one(ctx, project, age)
	if err != nil {
		return nil, Board{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return registry, Board{state.show(age), state.known.charts, state.alerts()}, nil
}

// One returns a project's pipeline, fetched as by All. It returns NotFound, and BadGateway without a good answer.
func (s *Pipelines) One(
	ctx context.Context, project string, maxAge time.Duration,
) (domain.ProjectPipeline, error) {
	age := apiAge(maxAge)
	_, state, err := s.one(ctx, project, age)
	if err != nil {
		return domain.ProjectPipeline{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := state.show(age)
	if !shown.Reachable {
		err = domain.Errorf(domain.BadGateway, "%s", shown.Error)
	}
	return shown, err
}

// known returns a project's last good response, empty before the first. It fetches nothing.
func (s *Pipelines) known(project string) *boardFacts {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setRegistry()
	i, found := s.registry.Index(project)
	if !found {
		return &boardFacts{}
	}
	return s.states[i].known
}

// Finishes reports whether an event has finished its story, going by the board that was last read.
func (s *Pipelines) Finishes(e domain.Event) bool { return s.known(e.Project).workflow.FinishedBy(e) }

// Takes reports whether a project's server accepts changes of an item of its board, as far as the item says.
func (s *Pipelines) Takes(project string, item *domain.Item) bool {
	answer := s.known(project).answer
	return answer != nil && answer.Board.Writable && item.Version != "" && item.Fault == "" &&
		(item.Branch == "" || item.Worktree != "")
}

// Past returns what git knew of a project when its board was last read.
func (s *Pipelines) Past(project string) domain.Past { return s.known(project).charts.Past }

// StageWord is domain.StageWords for the boards that were last read.
func (s *Pipelines) StageWord(project, stage string) string {
	return domain.StageWord(s.known(project).stages, stage)
}

// Boards returns all boards, as fresh as pages show them: the last boards if nothing has changed.
func (s *Pipelines) Boards(ctx context.Context, maxAge time.Duration) *Boards {
	age := pageAge(maxAge, len(s.projects.Registry().Projects))
	s.update(ctx, age)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setRegistry()
	if s.last == nil || !s.last.isCurrent(s.changes, s.states, age) {
		s.last = newBoards(s.registry, s.states, s.changes, age)
	}
	return s.last
}

func (s *Pipelines) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.setRegistry(); s.last != nil && s.last.Registry != s.registry {
		s.last = nil
	}
}

// RefetchIfChanged takes what a read of the project's feed says about its pipeline, and fetches that if it may have
// changed.
func (s *Pipelines) RefetchIfChanged(project domain.Project, r domain.FeedResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setRegistry()
	state := s.state(project)
	if state != nil && (state.mayHaveChanged(r, time.Now()) || s.isUnobserved(state) && state.observing == nil) {
		state.feed.at = time.Now()
		s.refetchLater(state)
	}
}

// update fetches all projects that are not current, derives again what is outdated, and waits for that.
func (s *Pipelines) update(ctx context.Context, age pipelineAge) (*domain.Registry, []*pipelineState) {
	s.mu.Lock()
	s.setRegistry()
	registry, states := s.registry, s.states
	var awaited []*pipelineState
	for _, state := range states {
		if s.renew(state, age, turnNext) {
			awaited = append(awaited, state)
		}
	}
	s.mu.Unlock()
	s.await(ctx, age, awaited...)
	return registry, states
}

// one does what update does for one project. It returns NotFound.
func (s *Pipelines) one(
	ctx context.Context, project string, age pipelineAge,
) (*domain.Registry, *pipelineState, error) {
	s.mu.Lock()
	s.setRegistry()
	i, found := s.registry.Index(project)
	if !found {
		s.mu.Unlock()
		return nil, nil, projectNotFound(project)
	}
	registry, state := s.registry, s.states[i]
	awaited := s.renew(state, age, turnFirst)
	s.mu.Unlock()
	if awaited {
		s.await(ctx, age, state)
	}
	return registry, state, nil
}

// find returns a story and its stage from the project's last good response, nil if there is none. It fetches the
// pipeline and waits for it as All does.
func (s *Pipelines) find(ctx context.Context, project, story string) (item *domain.Item, stage string) {
	if _, _, err := s.one(ctx, project, apiAge(0)); err != nil {
		return nil, ""
	}
	item, at := s.Known(project, story)
	return item, at.Name
}

// Stages returns the stages of a project as they were when its board was last read.
func (s *Pipelines) Stages(project string) []domain.Stage { return s.known(project).stages }

// Known returns a story and its stage as they were when the project's board was last read, nil if it was not there.
func (s *Pipelines) Known(project, story string) (item *domain.Item, stage domain.Stage) {
	for _, stage := range s.known(project).stages {
		if i := slices.IndexFunc(stage.Items, func(item domain.Item) bool { return item.StoryID == story }); i >= 0 {
			return &stage.Items[i], stage
		}
	}
	return nil, stage
}

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
	// probeInterval is how often a gateway that does not lead tries to reach the projects that the leader cannot reach,
	// at most maxProbes of them.
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

// Reaches returns how many projects this gateway reaches of those that the leader cannot, as far as it has tried.
func (s *Pipelines) Reaches() int { return int(s.reaches.Load()) }

// await waits until these projects are current, or until there is no more need to wait.
func (s *fetcher) await(ctx context.Context, age pipelineAge, asked ...*pipelineState) {
	ctx, cancel := context.WithTimeout(ctx, s.budget(asked, age))
	defer cancel()
	for _, state := range asked {
		s.awaitOne(ctx, state, age.oldest)
	}
}

// budget returns how long to wait for these projects: less if all of them have a usable state.
func (s *fetcher) budget(awaited []*pipelineState, age pipelineAge) time.Duration {
	if age.trusted == 0 {
		return pipelineBudget
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range awaited {
		if state.known.answer == nil || state.err == nil && !state.isFresh(age, age.grace) {
			return pipelineBudget
		}
	}
	return knownBudget
}

// awaitOne returns when a fetch that began at or after oldest has ended, when there is no need to wait, or when ctx
// ends.
func (s *fetcher) awaitOne(ctx context.Context, state *pipelineState, oldest time.Time) {
	for ctx.Err() == nil {
		s.mu.Lock()
		task, failed := state.task, state.err != nil
		done := task == nil || failed || !state.askedAt.Before(oldest) && !s.isOutdated(state)
		var began time.Time
		if task != nil {
			began = task.began
		}
		s.mu.Unlock()
		if done {
			return
		}
		patience := pipelineBudget
		if !began.IsZero() {
			patience -= time.Since(began)
		}
		select {
		case <-task.done:
		case <-time.After(patience):
			return
		case <-ctx.Done():
		}
	}
}
