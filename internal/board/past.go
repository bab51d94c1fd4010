package board

import (
	"path"
	"strings"
)

// Past says what commits did to a board's stories.
type Past struct {
	// Paths are where its files are, below its directory.
	Paths []string
	// Config differs when Moves makes something else of the same commits.
	Config string
	// Moves returns the moves of a commit that changed files. read returns a blob, nil if it cannot be read.
	Moves func(files []Changed, read func(id string) []byte) []Move
}

// Changed is a file that a commit changed.
type Changed struct {
	Path          string // below the board's directory
	Before, After string // the ids of its blobs, "" where there is no regular file
}

// Move is what a commit did to a story.
type Move struct{ StoryID, From, To string }

// Past returns what commits did to this board.
func (b *Board) Past() Past { return Past{Paths: []string{"."}, Moves: stageMoves} }

// stageMoves returns which stories have other stage directories than before.
func stageMoves(files []Changed, _ func(string) []byte) (moves []Move) {
	from := map[string]string{}
	for _, f := range files {
		if stage, id, ok := stagePath(f.Path); ok && f.After == "" && f.Before != "" {
			from[id] = stage
		}
	}
	for _, f := range files {
		if stage, id, ok := stagePath(f.Path); ok && f.After != "" && f.Before == "" {
			moves = append(moves, Move{id, from[id], stage})
		}
	}
	return moves
}

func stagePath(file string) (stage, id string, ok bool) {
	dir, name := path.Split(file)
	id, isStory := strings.CutSuffix(name, ".md")
	stage = strings.TrimSuffix(dir, "/")
	return stage, id, isStory && id != "" && !strings.HasPrefix(name, ".") && stageName().MatchString(stage)
}
