package service

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/flow"
	"switchyard/internal/supervise"
)

type flowStore interface {
	FlowVisits(ctx context.Context, project string, yield func(domain.FlowVisit)) error
	// FlowStories returns the ids and names of stories by their numbers.
	FlowStories(ctx context.Context, numbers []int64) (map[int64]domain.StoryRef, error)
}

// Flow tells how long work takes, how much is finished, and when it may be finished, from the visits of stories.
type Flow struct {
	store     flowStore
	visits    *Visits
	pipelines *Pipelines

	reads, makes singleflight.Group // of projects' visits, and of reports

	counting sync.Mutex     // held while a report is computed
	promises map[uint64]int // forecasts for flow.Grade, by the hash of their samples

	mu       sync.Mutex // never held while waiting for the store
	projects map[string]*flowProject
	reports  map[string]madeReport
}

const (
	// maxReports, maxRows, the stories in all reports, and maxPromises limit what is kept; when there are more, all are
	// made again.
	maxReports, maxRows, maxPromises = 32, 50_000, 20_000
	// warmProjects is up to how many projects are read before anybody asks.
	warmProjects = 500
	// fewProjects is up to how many projects are read one by one instead of all at once.
	fewProjects = 20
)

func newFlow(store flowStore, visits *Visits, pipelines *Pipelines) *Flow {
	return &Flow{
		store: store, visits: visits, pipelines: pipelines, projects: map[string]*flowProject{},
		reports: map[string]madeReport{}, promises: map[uint64]int{},
	}
}

// Run makes the usual report once, so that the first look does not wait for visits and forecasts of days before today.
// It reads one project at a time, so that everything else gets on meanwhile.
func (f *Flow) Run(ctx context.Context) error {
	registry := f.pipelines.projects.Registry()
	if len(registry.Projects) > warmProjects || !supervise.Sleep(ctx, time.Second) { // most boards are known by then
		return nil
	}
	for _, p := range registry.Projects {
		if _, err := f.known(ctx, []string{p.Name}); err != nil {
			return supervise.UnlessEnded(ctx, unlessLost(err))
		}
	}
	_, err := f.Report(ctx, domain.FlowQuery{Days: domain.FlowDays, Ahead: domain.FlowAhead, Zone: time.UTC})
	return supervise.UnlessEnded(ctx, unlessLost(err))
}

// Report returns the report for a query, which is shared and must not be changed. The query's values must be in their
// ranges. It returns NotFound for an unknown project, and Unavailable while the store cannot be reached.
func (f *Flow) Report(ctx context.Context, q domain.FlowQuery) (*domain.FlowReport, error) {
	boards, err := f.boards(ctx, q.Projects)
	if err != nil {
		return nil, err
	}
	now := clock.Now().In(q.Zone)
	var key, of strings.Builder
	fmt.Fprintf(&key, "%d %d %d %t %s %d", q.Days, q.Ahead, q.Items, q.All, q.Zone, flow.Day(now))
	projects, made := make([]flowBoard, len(boards)), make([]*domain.PipelineSummary, len(boards))
	names := make([]string, len(boards))
	for i := range boards {
		names[i] = boards[i].Project
	}
	known, err := f.known(ctx, names)
	if err != nil {
		return nil, err
	}
	for i := range boards {
		p := &boards[i]
		projects[i], made[i] = newFlowBoard(p, known[i]), p.Summarized
		// What is derived from a board is replaced when that changes.
		fmt.Fprintf(&key, " %s", p.Project)
		fmt.Fprintf(&of, " %d %p", known[i].version, p.Summarized)
	}
	f.mu.Lock()
	kept, found := f.reports[key.String()]
	f.mu.Unlock()
	if found && kept.of == of.String() {
		return kept.report, nil
	}
	return shared(ctx, &f.makes, key.String()+of.String(), func(ctx context.Context) (*domain.FlowReport, error) {
		report, err := f.count(ctx, q, now, projects)
		if err != nil || q.All { // that may be large, and is asked for once
			return report, err
		}
		f.keep(key.String(), names, madeReport{report, of.String(), made})
		return report, nil
	})
}

func (f *Flow) count(
	ctx context.Context, q domain.FlowQuery, now time.Time, projects []flowBoard,
) (*domain.FlowReport, error) {
	f.counting.Lock()
	c := newFlowCount(q, now)
	for _, p := range projects {
		c.add(p)
	}
	report := c.report(f.promise)
	f.counting.Unlock()
	if q.All {
		return report, nil
	}
	return report, f.name(ctx, report.Stories)
}

// Named returns finished stories of a report about all, which come without ids and names, with these.
func (f *Flow) Named(ctx context.Context, some []domain.FlowStory) ([]domain.FlowStory, error) {
	named := slices.Clone(some)
	return named, f.name(ctx, named)
}

func (f *Flow) Story(ctx context.Context, number int64) (domain.StoryRef, error) {
	refs, err := f.store.FlowStories(ctx, []int64{number})
	if _, found := refs[number]; err == nil && !found {
		err = domain.Errorf(domain.NotFound, "There is no such story.")
	}
	return refs[number], err
}

// boards returns the boards of projects in the registry's order, each once; of all without names. For one project it
// asks no other.
func (f *Flow) boards(ctx context.Context, names []string) (boards []domain.ProjectPipeline, err error) {
	if len(names) == 1 {
		_, board, err := f.pipelines.Board(ctx, names[0], quietAge)
		return []domain.ProjectPipeline{board.Pipeline}, err
	}
	all := f.pipelines.Boards(ctx, quietAge)
	if len(names) == 0 {
		return all.Pipelines, nil
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		i, found := all.Registry.Index(name)
		if !found {
			return nil, projectNotFound(name)
		}
		boards = append(boards, all.Pipelines[i])
	}
	return boards, nil
}

// promise returns the forecast for a sample, which is made once. The caller holds counting.
func (f *Flow) promise(sample []int, make func() int) int {
	h := fnv.New64a()
	for _, n := range sample {
		_, _ = fmt.Fprintf(h, "%d ", n)
	}
	key := h.Sum64()
	promised, known := f.promises[key]
	if !known {
		if len(f.promises) >= maxPromises {
			clear(f.promises)
		}
		promised = make()
		f.promises[key] = promised
	}
	return promised
}

// name fills in the ids and names of finished stories.
func (f *Flow) name(ctx context.Context, stories []domain.FlowStory) error {
	numbers := make([]int64, len(stories))
	for i := range stories {
		numbers[i] = stories[i].Number
	}
	refs, err := f.store.FlowStories(ctx, numbers)
	for i := range stories {
		ref := refs[numbers[i]]
		stories[i].StoryID, stories[i].StoryName = ref.ID, ref.Name
	}
	return err
}

// Sentence says the flow of projects, or of all without names, on the days of a zone in a sentence.
func (f *Flow) Sentence(ctx context.Context, zone *time.Location, projects ...string) (string, error) {
	q := domain.FlowQuery{Projects: projects, Days: domain.FlowDays, Ahead: domain.FlowAhead, Zone: zone}
	r, err := f.Report(ctx, q)
	if err != nil {
		return "", err
	}
	finished := len(r.Stories) + r.More
	text := fmt.Sprintf("%s finished in %d days", domain.Count(finished, "story", "stories"), q.Days)
	if p := r.Percentiles; p != nil {
		text += fmt.Sprintf(": half within %s, 85 %% within %s", domain.Count(p[0], "day", "days"),
			domain.Count(p[2], "day", "days"))
	} else {
		text += ", too few to say how long a story takes"
	}
	return text + fmt.Sprintf("; %d in work.", len(r.Ageing)), nil
}

// Forecast says in sentences how many stories of a project will be finished in the next two weeks, and when so many
// items will be; 0 items are its open stories.
func (f *Flow) Forecast(ctx context.Context, project string, items int) (string, error) {
	q := domain.FlowQuery{
		Projects: []string{project}, Days: domain.FlowDays, Ahead: domain.FlowAhead, Items: items, Zone: time.UTC,
	}
	r, err := f.Report(ctx, q)
	if err != nil {
		return "", err
	}
	if r.HowMany == nil {
		return fmt.Sprintf("No forecast: %s finished in %s so far; it needs %d of each.",
			domain.Count(r.Finished, "story was", "stories were"), domain.Count(r.Sample, "day", "days"), flow.Enough), nil
	}
	date := "after more than a year"
	if days := r.When[2]; days > 0 {
		date = "by " + clock.Now().UTC().AddDate(0, 0, days).Format("2 January")
	}
	return fmt.Sprintf("%s: 85 %% %s. In %d days, 85 %%: %d or more.", domain.Count(r.Items, "story", "stories"), date,
		r.Ahead, r.HowMany[2]), nil
}
