package service

import (
	"cmp"
	"context"
	"slices"
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

// Search finds stories, projects and agents by parts of their names, ignoring case and accents.
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
	if len(stories.found) < limit { // stories on no board rank below all others
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

// notOnBoard is added to the rank of stories that are on no board, so that others come first.
const notOnBoard = 10

// ranking keeps the best matches of a search, at most limit.
type ranking[T any] struct {
	words []string
	whole string // the words with spaces between
	limit int
	found []ranked[T] // the best first
}

type ranked[T any] struct {
	rank  int // less is better
	key   string
	value T
}

func newRanking[T any](words []string, limit int) *ranking[T] {
	return &ranking[T]{words: words, whole: strings.Join(words, " "), limit: limit}
}

// rank returns how well a folded name and second name match, less being better, and whether they do at all.
func (r *ranking[T]) rank(first, second string) (rank int, matches bool) {
	for _, word := range r.words {
		if !strings.Contains(first, word) && !strings.Contains(second, word) {
			return 0, false
		}
	}
	switch {
	case first == r.whole || second == r.whole || hasWord(first, r.whole): // "7" is 7_story_export
		return 0, true
	case strings.HasPrefix(first, r.whole) || strings.HasPrefix(second, r.whole):
		return 1, true
	case hasWordAfter(first, r.whole, ' ') || hasWordAfter(second, r.whole, ' ') || hasWordAfter(first, r.whole, '_'):
		return 2, true
	case strings.Contains(first, r.whole) || strings.Contains(second, r.whole):
		return 3, true
	}
	return 4, true
}

func hasWord(id, word string) bool {
	return len(id) > len(word) && id[len(word)] == '_' && strings.HasPrefix(id, word)
}

// hasWordAfter reports whether text contains word right after the character after.
func hasWordAfter(text, word string, after byte) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		if at += i; at > 0 && text[at-1] == after {
			return true
		}
		at++
	}
}

// takes reports whether a match of this rank could be among the best.
func (r *ranking[T]) takes(rank int, key string) bool {
	return len(r.found) < r.limit || r.limit > 0 && compareRanked(r.found[r.limit-1], rank, key) > 0
}

// add adds a match if it is among the best. Within a rank the shorter key wins, then the lesser key, then the earlier
// match.
func (r *ranking[T]) add(rank int, key string, value T) {
	if !r.takes(rank, key) {
		return
	}
	at := len(r.found)
	for at > 0 && compareRanked(r.found[at-1], rank, key) > 0 {
		at--
	}
	r.found = slices.Insert(r.found, at, ranked[T]{rank, key, value})
	r.found = r.found[:min(len(r.found), r.limit)]
}

func compareRanked[T any](m ranked[T], rank int, key string) int {
	return cmp.Or(cmp.Compare(m.rank, rank), cmp.Compare(len(m.key), len(key)), cmp.Compare(m.key, key))
}

func (r *ranking[T]) best() []T {
	values := make([]T, len(r.found))
	for i, m := range r.found {
		values[i] = m.value
	}
	return values
}
