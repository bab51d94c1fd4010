package service

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

const (
	// MaxSearch is the longest text that can be searched for, in characters, and maxSearchWords the most words in it.
	MaxSearch, maxSearchWords = 200, 10
	// maxGone is how many stories of the stream are ranked.
	maxGone = domain.MaxSearchOffset + 2000
)

// SearchQuery is what is searched for.
type SearchQuery struct {
	Text string
	// Offset is how many of each list are skipped, and Limit how many follow at most.
	Offset, Limit int
	// Texts asks for stories whose texts contain the words, too: the project servers search these.
	Texts bool
}

// Found is the result of a search, each list with the best match first.
type Found struct {
	Stories  []domain.StoryRef
	Projects []string
	Agents   []domain.Agent
	Texts    []domain.TextRef
	Total    domain.FoundTotal
	// Silent is how many projects did not say in time what is in their texts.
	Silent int
}

// Search finds stories, projects and agents by parts of their names, and stories by their texts, ignoring case and
// accents.
type Search struct {
	events    *Events
	pipelines *Pipelines
	agents    *Agents
	store     storyStore
	servers   StoryServers
	log       *slog.Logger
}

// Find returns what matches all words. It returns Invalid for a text that has no words or is too long.
func (s *Search) Find(ctx context.Context, q SearchQuery) (found Found, err error) {
	words := strings.Fields(fold.Text(q.Text))
	if len(words) == 0 || utf8.RuneCountInString(q.Text) > MaxSearch {
		return found, domain.Errorf(domain.Invalid, "q: must be 1 to %d characters, not only spaces", MaxSearch)
	}
	words = words[:min(len(words), maxSearchWords)]
	boards := s.pipelines.Boards(ctx, quietAge)
	limit := q.Offset + q.Limit
	stories := newRanking[domain.StoryRef](words, limit)
	boards.search(stories)
	if err := s.findGone(ctx, boards, stories); err != nil { // stories on no board rank below all others
		return found, err
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
	if q.Texts {
		if found, err = s.findTexts(ctx, boards, words, limit); err != nil {
			return found, err
		}
	}
	found.Stories, found.Projects, found.Agents = stories.best(), projects.best(), agents.best()
	found.Total.Stories, found.Total.Projects, found.Total.Agents = stories.total, projects.total, agents.total
	found.Stories, found.Projects = after(found.Stories, q.Offset), after(found.Projects, q.Offset)
	found.Agents, found.Texts = after(found.Agents, q.Offset), after(found.Texts, q.Offset)
	return found, nil
}

func after[T any](list []T, n int) []T { return list[min(n, len(list)):] }

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

// Stories returns the first stories that match.
func (s *Search) Stories(ctx context.Context, text string, limit int) ([]domain.StoryRef, error) {
	found, err := s.Find(ctx, SearchQuery{Text: text, Limit: limit})
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
			if !matches {
				continue
			}
			if key := cmp.Or(story.name(), story.id()); !stories.takes(rank, key) {
				stories.total++
			} else {
				item := &p.Stages[story.stage].Items[story.index]
				stories.add(rank, key, domain.StoryRef{
					Project: p.Project, ID: item.StoryID, Name: item.StoryName, Stage: p.Stages[story.stage].Name,
					Item: item, Finished: int(story.stage) >= done,
				})
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

// notOnBoard is added to the rank of stories that are on no board, so that others come first.
const notOnBoard = 10
