package service

import (
	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

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

// maxSearched is how much of a name is searched, in bytes.
const maxSearched = 300

func clip(text string) string { return domain.CutBytes(text, maxSearched) }
