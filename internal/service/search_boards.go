package service

import (
	"cmp"
	"sync"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

// searchedBoards caches the projects' pipelines prepared for searching. The zero value is ready for use.
type searchedBoards struct {
	mu        sync.Mutex
	byProject map[string]*searchedBoard
}

// searchedBoard is one project's board.
type searchedBoard struct {
	of      *domain.Stage // the first stage of the answer that it was made from, which identifies the answer
	stories []searchedStory
	ids     map[string]bool // nil until they are needed
}

// searchedStory is where a story is in its pipeline, and its folded id and name, one after the other.
type searchedStory struct {
	folded       string
	idLength     uint16
	stage, index uint16
}

func (s searchedStory) id() string   { return s.folded[:s.idLength] }
func (s searchedStory) name() string { return s.folded[s.idLength:] }

// find ranks the stories on boards.
func (b *searchedBoards) find(pipelines []domain.ProjectPipeline, stories *ranking[domain.StoryRef]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.byProject) > 2*len(pipelines) { // most of them have been removed
		b.byProject = nil
	}
	for i := range pipelines {
		p := &pipelines[i]
		_, done := domain.WorkStages(p.Stages)
		for _, story := range b.of(p).stories {
			rank, matches := stories.rank(story.id(), story.name())
			if rank *= 2; int(story.stage) > done { // archived: a story in work that matches as well comes first
				rank++
			}
			if key := cmp.Or(story.name(), story.id()); matches && stories.takes(rank, key) {
				item := &p.Stages[story.stage].Items[story.index]
				stories.add(rank, key, domain.StoryRef{Project: p.Project, ID: item.StoryID, Name: item.StoryName, Stage: p.Stages[story.stage].Name})
			}
		}
	}
}

// has reports whether a story is on the board.
func (b *searchedBoards) has(p domain.ProjectPipeline, id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	board := b.of(&p)
	if board.ids == nil {
		board.ids = map[string]bool{}
		for _, stage := range p.Stages {
			for i := range stage.Items {
				board.ids[stage.Items[i].StoryID] = true
			}
		}
	}
	return board.ids[id]
}

// of returns the board of a pipeline. The caller holds mu.
func (b *searchedBoards) of(p *domain.ProjectPipeline) *searchedBoard {
	if len(p.Stages) == 0 {
		return &searchedBoard{}
	}
	board := b.byProject[p.Project]
	if board != nil && board.of == &p.Stages[0] {
		return board
	}
	if b.byProject == nil {
		b.byProject = map[string]*searchedBoard{}
	}
	board = newSearchedBoard(p.Stages)
	b.byProject[p.Project] = board
	return board
}

func newSearchedBoard(stages []domain.Stage) *searchedBoard {
	board := &searchedBoard{of: &stages[0]}
	for i, stage := range stages {
		for j := range stage.Items {
			id, name := fold.Text(clip(stage.Items[j].StoryID)), fold.Text(clip(stage.Items[j].StoryName))
			board.stories = append(board.stories, searchedStory{id + name, uint16(len(id)), uint16(i), uint16(j)})
		}
	}
	return board
}
