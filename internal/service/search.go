package service

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

const (
	// MaxSearch is the longest text that can be searched for, in characters, and maxSearchWords the most words in it.
	MaxSearch, maxSearchWords = 200, 10
	// maxGone is how many stories that are on no board are ranked.
	maxGone = 1000
)

// Found is the result of a search, each list with the best match first.
type Found struct {
	Stories  []domain.StoryRef
	Projects []string
	Agents   []domain.Agent
}

// Search finds stories, projects and agents by parts of their names, ignoring case and accents. It is ready for use
// once its exported fields are set.
type Search struct {
	events    *Events
	pipelines *Pipelines
	agents    *Agents
	store     storyStore
}

// Find returns what matches all words of text, at most limit of each kind. It returns Invalid for a text that has no
// words or is too long.
func (s *Search) Find(ctx context.Context, text string, limit int) (Found, error) {
	words := strings.Fields(fold.Text(text))
	if len(words) == 0 || utf8.RuneCountInString(text) > MaxSearch {
		return Found{}, domain.Errorf(domain.Invalid, "q: must be 1 to %d characters, not only spaces", MaxSearch)
	}
	words = words[:min(len(words), maxSearchWords)]
	boards := s.pipelines.Boards(ctx, quietAge)
	stories := newRanking[domain.StoryRef](words, limit)
	boards.search(stories)
	if !stories.full() { // stories on no board rank below all others
		if err := s.findGone(ctx, boards, stories); err != nil {
			return Found{}, err
		}
	}
	projects, agents := newRanking[string](words, limit), newRanking[domain.Agent](words, limit)
	for _, p := range boards.Registry.Projects {
		if rank, matches := projects.rank(fold.Text(p.Name), ""); matches {
			projects.add(rank, p.Name, p.Name)
		}
	}
	for _, a := range s.agents.All() {
		if rank, matches := agents.rank(fold.Text(a.Label), fold.Text(a.ID)); matches {
			agents.add(rank, a.Label, a.Agent)
		}
	}
	return Found{stories.best(), projects.best(), agents.best()}, nil
}

// findGone adds the stories of registered projects that only the stream knows.
func (s *Search) findGone(ctx context.Context, boards *Boards, stories *ranking[domain.StoryRef]) error {
	if s.events.Available() != nil {
		return nil // the stories on boards are better than nothing
	}
	known, err := s.store.FindStories(ctx, stories.words, maxGone)
	if domain.CodeOf(err) == domain.Unavailable && len(stories.found) > 0 {
		return nil // it takes too long; the stories on boards are better than nothing
	}
	if err != nil {
		return err
	}
	for _, ref := range known {
		i, found := boards.Registry.Index(ref.Project)
		if !found || boards.searched[i] != nil && boards.searched[i]().ids[ref.ID] {
			continue
		}
		id, name := fold.Text(clip(ref.ID)), fold.Text(clip(ref.Name))
		if rank, matches := stories.rank(id, name); matches {
			stories.add(rank+notOnBoard, cmp.Or(name, id), ref)
		}
	}
	return nil
}

func (s *Search) Stories(ctx context.Context, text string, limit int) ([]domain.StoryRef, error) {
	found, err := s.Find(ctx, text, limit)
	return found.Stories, err
}

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
				ref := domain.StoryRef{Project: p.Project, ID: item.StoryID, Name: item.StoryName}
				ref.Stage = p.Stages[story.stage].Name
				stories.add(rank, key, ref)
			}
		}
	}
}

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
