package service

import (
	"context"
	"strings"
	"sync"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

const (
	// MaxSearch is the longest text that is searched for, in characters, and maxSearchWords the most words in it.
	MaxSearch, maxSearchWords = 200, 10
	// maxGone is how many stories that are on no board are looked at for the best.
	maxGone = 1000
	// maxSearched is how much of a name is searched, in bytes.
	maxSearched = 300
)

// Found is what a search has found, each list with the best first.
type Found struct {
	Stories  []domain.StoryRef
	Projects []string
	Agents   []domain.Agent
}

// Search finds stories, projects and agents by parts of their names, whatever their case and accents. Its zero value
// but for the first fields is ready for use.
type Search struct {
	projects  *Projects
	pipelines *Pipelines
	agents    *Agents
	store     storyStore

	mu     sync.Mutex
	boards map[string]board // by project
}

// board is what a pipeline has of a project, prepared for searching.
type board struct {
	of      *domain.Stage // the first of the answer that it was made from, which never changes
	stories []searchable
}

// searchable is a story with what of it is searched.
type searchable struct {
	domain.StoryRef
	id, name string // folded
}

func newSearchable(s domain.StoryRef) searchable {
	return searchable{s, fold.Text(clip(s.ID)), fold.Text(clip(s.Name))}
}

func clip(text string) string {
	if len(text) > maxSearched {
		return strings.ToValidUTF8(text[:maxSearched], "")
	}
	return text
}

// Find returns what matches all words of text, of each kind at most limit. It returns Invalid for a text without any, or one
// that is too long.
func (s *Search) Find(ctx context.Context, text string, limit int) (Found, error) {
	words := strings.Fields(fold.Text(text))
	if len(words) == 0 || utf8.RuneCountInString(text) > MaxSearch {
		return Found{}, domain.Errorf(domain.Invalid, "q: must be 1 to %d characters, not only spaces", MaxSearch)
	}
	words = words[:min(len(words), maxSearchWords)]
	known, err := s.store.FindStories(ctx, words, maxGone)
	if err != nil {
		return Found{}, err
	}
	gone := make(map[storyID]domain.StoryRef, len(known))
	for _, ref := range known {
		gone[storyID{ref.Project, ref.ID}] = ref
	}
	registry, pipelines := s.pipelines.Recent(ctx, quietAge)
	stories := newRanking[domain.StoryRef](words, limit)
	s.searchBoards(pipelines, stories, gone)
	for _, ref := range gone {
		if _, found := registry.Find(ref.Project); found {
			story := newSearchable(ref)
			stories.add(story.id, story.name, ref, notOnBoard)
		}
	}
	projects, agents := newRanking[string](words, limit), newRanking[domain.Agent](words, limit)
	for _, p := range registry.Projects {
		projects.add(fold.Text(p.Name), "", p.Name, 0)
	}
	for _, a := range s.agents.All() {
		agents.add(fold.Text(a.Label), fold.Text(a.ID), a.Agent, 0)
	}
	return Found{stories.best(), projects.best(), agents.best()}, nil
}

// Stories returns the stories that Find finds.
func (s *Search) Stories(ctx context.Context, text string, limit int) ([]domain.StoryRef, error) {
	found, err := s.Find(ctx, text, limit)
	return found.Stories, err
}

type storyID struct{ project, id string }

// searchBoards ranks what is on boards, and takes it out of gone.
func (s *Search) searchBoards(pipelines []domain.ProjectPipeline, stories *ranking[domain.StoryRef], gone map[storyID]domain.StoryRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.boards
	s.boards = make(map[string]board, len(pipelines))
	for _, p := range pipelines {
		if len(p.Stages) == 0 {
			continue
		}
		b := old[p.Project]
		if b.of != &p.Stages[0] {
			b = newBoard(p)
		}
		s.boards[p.Project] = b
		for i := range b.stories {
			story := &b.stories[i]
			if stories.add(story.id, story.name, story.StoryRef, 0) {
				delete(gone, storyID{story.Project, story.ID})
			}
		}
	}
}

func newBoard(p domain.ProjectPipeline) board {
	b := board{of: &p.Stages[0]}
	for _, stage := range p.Stages {
		for _, item := range stage.Items {
			b.stories = append(b.stories, newSearchable(domain.StoryRef{Project: p.Project, ID: item.StoryID, Name: item.StoryName, Stage: stage.Name}))
		}
	}
	return b
}
