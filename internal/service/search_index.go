package service

import (
	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

type searchIndex struct {
	stories []searchEntry
	ids     map[string]bool
}

// searchEntry is where a story is in its pipeline, and its folded id and name, one after the other.
type searchEntry struct {
	folded       string
	idLength     uint16
	stage, index uint16
}

func (s searchEntry) id() string   { return s.folded[:s.idLength] }
func (s searchEntry) name() string { return s.folded[s.idLength:] }

func newSearchIndex(stages []domain.Stage) *searchIndex {
	board := &searchIndex{ids: map[string]bool{}}
	for i, stage := range stages {
		for j := range stage.Items {
			id, name := fold.Text(clip(stage.Items[j].StoryID)), fold.Text(clip(stage.Items[j].StoryName))
			board.stories = append(board.stories, searchEntry{id + name, uint16(len(id)), uint16(i), uint16(j)})
			board.ids[stage.Items[j].StoryID] = true
		}
	}
	return board
}

// maxSearched is how much of a name is searched, in bytes.
const maxSearched = 300

func clip(text string) string { return domain.CutBytes(text, maxSearched) }
