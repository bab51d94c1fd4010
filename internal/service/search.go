package service

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
	"switchyard/internal/supervise"
)

const (
	// MaxSearch is the longest text that can be searched for, in characters, and maxSearchWords the most words in it.
	MaxSearch, maxSearchWords = 200, 10
	// maxGone is how many stories known only from the stream are ranked.
	maxGone = domain.MaxSearchOffset + 2000
)

type SearchQuery struct {
	Text string
	// Offset is how many of each list are skipped, and Limit the most that follow.
	Offset, Limit int
	// Texts asks also for stories whose texts contain the words: the project servers search these.
	Texts bool
	// OnBoard leaves out stories that are no longer on any board.
	OnBoard bool
}

// Search finds stories, projects and agents by parts of their names, and stories by their texts, ignoring case and
// accents.
type Search struct {
	events    *Events
	pipelines *Pipelines
	agents    *Agents
	store     *database
	servers   StoryServers
	log       *slog.Logger
}

// Find returns what matches all words. It returns Invalid for a text without words or one that is too long.
func (s *Search) Find(ctx context.Context, q SearchQuery) (found domain.SearchResult, err error) {
	words := strings.Fields(fold.Text(q.Text))
	if len(words) == 0 || utf8.RuneCountInString(q.Text) > MaxSearch {
		return found, domain.Errorf(domain.Invalid, "q: must be 1 to %d characters, not only spaces", MaxSearch)
	}
	words = words[:min(len(words), maxSearchWords)]
	boards := s.pipelines.Boards(ctx, quietAge)
	limit := q.Offset + q.Limit
	stories := newRanking[domain.StoryRef](words, limit)
	boards.search(stories)
	onBoard := stories.total
	if !q.OnBoard {
		err = s.findGone(ctx, boards, stories) // stories on no board rank below all others
	}
	if err != nil {
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
	if found.OnBoard = onBoard; found.Total.All() == 0 {
		found.Suggestion = nearest(boards, s.agents.All(), words)
	}
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

func (s *Search) Stories(ctx context.Context, text string, limit int) ([]domain.StoryRef, error) {
	found, err := s.Find(ctx, SearchQuery{Text: text, Limit: limit})
	return found.Stories, err
}

// notOnBoard is added to the rank of stories that are on no board, so that others come first.
const notOnBoard = 10

const (
	// textTime is how long project servers may search their texts, textCalls how many do so at the same time, and
	// textProjects how many do so at all: each takes about 0.6 ms (make bench, search for a name).
	textTime     = time.Second
	textCalls    = 16
	textProjects = 400
)

// findTexts asks reachable projects for stories whose texts contain the words, at most limit in all.
func (s *Search) findTexts(
	ctx context.Context, boards *Boards, words []string, limit int,
) (found domain.SearchResult, err error) {
	bounded, cancel := context.WithTimeout(ctx, textTime)
	defer cancel()
	type answer struct {
		texts []domain.TextRef
		total int
		err   error
	}
	var asked []domain.Project
	for i := range boards.Pipelines {
		if p := &boards.Pipelines[i]; p.Reachable && !p.EventsOnly {
			asked = append(asked, boards.Registry.Projects[i])
		}
	}
	found.Silent = max(0, len(asked)-textProjects)
	asked = asked[:len(asked)-found.Silent]
	answers := make([]answer, len(asked))
	text := strings.Join(words, " ")
	var calls sync.WaitGroup
	slots := make(chan struct{}, textCalls)
	for i, project := range asked {
		slots <- struct{}{}
		calls.Add(1)
		supervise.Go(s.log, "search in texts", func() {
			defer func() { <-slots; calls.Done() }()
			a := &answers[i]
			a.texts, a.total, a.err = s.servers.FindTexts(bounded, project, text, limit)
		})
	}
	calls.Wait()
	if err := ctx.Err(); err != nil {
		return found, err
	}
	for _, a := range answers {
		if a.err != nil {
			found.Silent++
		}
		for j := range a.texts {
			t := &a.texts[j].StoryRef
			t.StageTitle = s.pipelines.StageWord(t.Project, t.Stage)
		}
		found.Texts = append(found.Texts, a.texts...)
		found.Total.Texts += a.total
	}
	domain.SortFirst(found.Texts, func(t domain.TextRef) bool { return t.Whole })
	found.Texts = found.Texts[:min(len(found.Texts), limit)]
	return found, nil
}
