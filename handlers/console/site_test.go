package console_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
	"switchyard/internal/wire"
)

// consoleSite is a gateway with boards instead of project servers.
type consoleSite struct {
	*gatewaytest.Site
	boards *boards
}

func newConsoleSite(t testing.TB) *consoleSite {
	t.Helper()
	b := &boards{pipelines: map[string][]domain.Stage{}}
	s := newConsoleSiteWith(t, b)
	s.boards = b
	return s
}

// newConsoleSiteWith returns a site with these project servers instead of boards.
func newConsoleSiteWith(t testing.TB, projects service.ProjectServers) *consoleSite {
	t.Helper()
	stories, ok := projects.(service.StoryServers)
	if !ok {
		stories = noStories{}
	}
	o := service.Options{Projects: projects, Stories: stories, Log: logOf(t)}
	return &consoleSite{Site: gatewaytest.NewSite(t, o, handlers.Gateway{})}
}

// newConsoleSiteWithBot returns a site with this bot.
func newConsoleSiteWithBot(t testing.TB, bot *gatewaytest.Bot) *consoleSite {
	t.Helper()
	b := &boards{pipelines: map[string][]domain.Stage{}}
	o := service.Options{Projects: b, Stories: b, Bot: bot, Log: logOf(t)}
	return &consoleSite{gatewaytest.NewSite(t, o, handlers.Gateway{}), b}
}

// boards answer like project servers, by the project's name, and with an error if there is no board.
type boards struct {
	service.StoryServers        // only Story is implemented
	body                 string // the text of every story, "" for a short one
	mu                   sync.Mutex
	pipelines            map[string][]domain.Stage
	asked                int
	failure              error // for what has no board, nil for a refused connection
}

func (b *boards) Pipeline(_ context.Context, p domain.Project, _ *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	stages, ok := b.pipelines[p.Name]
	if !ok {
		return nil, cmp.Or(b.failure, error(domain.Errorf(domain.BadGateway, "connection refused")))
	}
	return &domain.PipelineAnswer{Stages: stages, Raw: encodeStages(stages)}, nil
}

// encodeStages returns a project server's JSON for these stages.
func encodeStages(stages []domain.Stage) []byte {
	list := make([]wire.Stage, len(stages))
	for i, stage := range stages {
		list[i] = wire.Stage{Name: stage.Name, Items: []wire.Item{}}
		for _, item := range stage.Items {
			list[i].Items = append(list[i].Items, wire.Item{
				StoryID: item.StoryID, StoryName: item.StoryName, Blocked: wire.OrNull(item.Blocked), MergeFailure: wire.OrNull(item.MergeFailure),
				SinceMS: item.Since.UnixMilli(),
			})
		}
	}
	return domain.EncodeJSON(list)
}

// Story returns the board's story, which cannot be changed.
func (b *boards) Story(_ context.Context, p domain.Project, id string) (domain.Story, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	stages, ok := b.pipelines[p.Name]
	if !ok {
		return domain.Story{}, domain.Errorf(domain.BadGateway, "connection refused")
	}
	for _, stage := range stages {
		for _, item := range stage.Items {
			if item.StoryID == id {
				story := domain.Story{Name: item.StoryName, Stage: stage.Name, Since: item.Since, Blocked: item.Blocked, MergeFailure: item.MergeFailure, Reachable: true}
				story.File = &domain.StoryFile{Path: stage.Name + "/" + id + ".md", Version: "1", Body: cmp.Or(b.body, "# About\n\nText.")}
				return story, nil
			}
		}
	}
	return noStories{}.Story(context.Background(), p, id)
}

// noStories takes the place of project servers that do not serve stories.
type noStories struct{ service.StoryServers }

func (noStories) Story(context.Context, domain.Project, string) (domain.Story, error) {
	return domain.Story{}, domain.Errorf(domain.NotFound, "the project server has no such story")
}

func (noStories) FindTexts(context.Context, domain.Project, string, int) ([]domain.TextRef, int, error) {
	return nil, 0, nil
}

func (b *boards) FindTexts(context.Context, domain.Project, string, int) ([]domain.TextRef, int, error) {
	return nil, 0, nil
}

func (b *boards) set(project string, stages []domain.Stage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pipelines[project] = stages
}

func (b *boards) fail(err error) {
	b.mu.Lock()
	b.failure = err
	b.mu.Unlock()
}

func (b *boards) remove(project string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pipelines, project)
}

// board lists stages with their stories: "2_current: 14_story_login, 12_story_pay!waiting for a key". "!" blocks a
// story, "?" fails its merge.
func board(lines ...string) []domain.Stage {
	var stages []domain.Stage
	for _, line := range lines {
		name, list, _ := strings.Cut(line, ":")
		stage := domain.Stage{Name: name, Items: []domain.Item{}}
		for _, text := range strings.Split(list, ",") {
			if text = strings.TrimSpace(text); text == "" {
				continue
			}
			item := domain.Item{Since: time.Now().Add(-time.Duration(len(text)) * 7 * time.Minute)}
			if id, reason, ok := strings.Cut(text, "!"); ok {
				text, item.Blocked = id, reason
			}
			if id, reason, ok := strings.Cut(text, "?"); ok {
				text, item.MergeFailure = id, reason
			}
			item.StoryID = text
			_, words, _ := strings.Cut(text, "_story_")
			item.StoryName = strings.ToUpper(words[:min(1, len(words))]) + strings.ReplaceAll(words[min(1, len(words)):], "_", " ")
			stage.Items = append(stage.Items, item)
		}
		stages = append(stages, stage)
	}
	return stages
}

// add registers a project with a board.
func (s *consoleSite) add(name string, stages []domain.Stage) {
	s.Helper()
	if stages != nil {
		s.boards.set(name, stages)
	}
	if _, err := s.Projects.Add(context.Background(), name, "http://127.0.0.1:3001", nil); err != nil {
		s.Fatal(err)
	}
	s.Answered()
}

// move records that a story moved.
func (s *consoleSite) move(project, story, from, to string, at time.Time) {
	s.Helper()
	s.Record(project, moved(story, from, to, at))
}

// moveMany records at once that n stories moved, 0_story first.
func (s *consoleSite) moveMany(project string, n int, at time.Time) {
	s.Helper()
	records := make([]string, n)
	for i := range records {
		records[i] = moved(fmt.Sprintf("%d_story", i), "1_backlog", "2_current", at.Add(time.Duration(i-n)*time.Millisecond))
	}
	s.Record(project, records...)
}

func moved(story, from, to string, at time.Time) string {
	return fmt.Sprintf(`{"type":"stage_transition","story_id":%q,"story_name":%q,"from_stage":%q,"to_stage":%q,"timestamp_ms":%d}`,
		story, strings.ReplaceAll(story, "_", " "), from, to, at.UnixMilli())
}

func (b *boards) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

// logOf is a gateway's log, shown if the test fails. A fetch may end, and be logged, after the test.
func logOf(t testing.TB) *slog.Logger {
	log := &waittest.Log{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log)
		}
	})
	return slog.New(slog.NewTextHandler(log, nil))
}
