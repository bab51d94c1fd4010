package service

import (
	"cmp"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

// searchedBoard is a board prepared for searches.
type searchedBoard struct {
	stories []searchedStory
	ids     map[string]bool
}

// searchedStory is where a story is in its pipeline, and its folded id and name, one after the other.
type searchedStory struct {
	folded       string
	idLength     uint16
	stage, index uint16
}

func (s searchedStory) id() string   { return s.folded[:s.idLength] }
func (s searchedStory) name() string { return s.folded[s.idLength:] }

func newSearchedBoard(stages []domain.Stage) *searchedBoard {
	board := &searchedBoard{ids: map[string]bool{}}
	for i, stage := range stages {
		for j := range stage.Items {
			id, name := fold.Text(clip(stage.Items[j].StoryID)), fold.Text(clip(stage.Items[j].StoryName))
			board.stories = append(board.stories, searchedStory{id + name, uint16(len(id)), uint16(i), uint16(j)})
			board.ids[stage.Items[j].StoryID] = true
		}
	}
	return board
}

// search ranks the stories on boards.
func (b *Boards) search(stories *ranking[domain.StoryRef]) {
	for i := range b.Pipelines {
		p := &b.Pipelines[i]
		if b.searched[i] == nil {
			continue
		}
		_, done := domain.WorkStages(p.Stages)
		for _, story := range b.searched[i]().stories {
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
