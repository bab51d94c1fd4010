package service

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/flow"
	"switchyard/internal/supervise"
)

// Flow reports cycle times, throughput and forecasts, computed from the visits of stories.
type Flow struct {
	store     *database
	visits    *Visits
	pipelines *Pipelines

	makes singleflight.Group // of reports

	counting  sync.Mutex     // held while a report is computed
	forecasts map[uint64]int // forecasts for flow.Grade, by the hash of their samples

	mu      sync.Mutex // never held while waiting for the store
	reports map[string]cachedReport
}

type cachedReport struct {
	report *domain.FlowReport
	of     string
}

const (
	// maxReports, maxRows (the stories in all reports) and maxPromises limit what is kept; beyond them, all are made
	// again.
	maxReports, maxRows, maxPromises = 32, 50_000, 20_000
	// warmProjects is the number of projects up to which they are read before anybody asks.
	warmProjects = 500
	// flowPatience is how long a report waits for visits; until they are read it shows what is known.
	flowPatience = 300 * time.Millisecond
)

// Run makes the usual report once, so that the first reader need not wait for visits and past forecasts.
func (f *Flow) Run(ctx context.Context) error {
	registry := f.pipelines.projects.Registry()
	if len(registry.Projects) > warmProjects || !supervise.Sleep(ctx, time.Second) { // by then most boards are known
		return nil
	}
	_, err := f.Report(ctx, domain.FlowQuery{Days: domain.FlowDays, Ahead: domain.FlowAhead, Zone: time.UTC})
	return supervise.UnlessEnded(ctx, unlessLost(err))
}

// Report returns the report for a query, which is shared and must not be changed. The query's values must be in their
// ranges. If visits are still being read it shows the newest, or none. It returns NotFound for an unknown project, and
// Unavailable while the store cannot be reached.
func (f *Flow) Report(ctx context.Context, q domain.FlowQuery) (*domain.FlowReport, error) {
	boards, err := f.boards(ctx, q.Projects)
	if err != nil {
		return nil, err
	}
	now := clock.Now().In(q.Zone)
	names := make([]string, len(boards))
	for i := range boards {
		names[i] = boards[i].Project
	}
	if err := f.visits.LoadWhole(ctx, flowPatience, names...); err != nil {
		return nil, err
	}
	query := fmt.Sprint(q.Days, q.Ahead, q.Items, q.All, q.Zone, flow.Day(now), names)
	visits, of := make([]*domain.ProjectVisits, len(boards)), make([]any, 0, 2*len(boards))
	for i := range boards {
		var version uint64
		visits[i], version = f.visits.now(names[i])
		of = append(of, version, boards[i].Version)
	}
	made := fmt.Sprint(of...)
	f.mu.Lock()
	kept, found := f.reports[query]
	f.mu.Unlock()
	if found && kept.of == made {
		return kept.report, nil
	}
	return shareCall(ctx, &f.makes, query+made, func(ctx context.Context) (*domain.FlowReport, error) {
		report, err := f.count(ctx, q, now, boards, visits)
		if err == nil && !q.All { // one of all may be large, and is asked for once
			f.keep(query, names, cachedReport{report, made})
		}
		return report, err
	})
}

func (f *Flow) count(
	ctx context.Context, q domain.FlowQuery, now time.Time, boards []domain.ProjectPipeline,
	visits []*domain.ProjectVisits,
) (*domain.FlowReport, error) {
	f.counting.Lock()
	c := newFlowCount(q, now)
	for i := range boards {
		c.add(&boards[i], visits[i])
	}
	report := c.report(f.cachedForecast)
	f.counting.Unlock()
	if q.All {
		return report, nil
	}
	return report, f.addNames(ctx, report.Stories, report.Ageing)
}

func (f *Flow) keep(query string, projects []string, made cachedReport) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.reports, query)
	for _, name := range projects {
		if _, exists := f.pipelines.projects.Registry().Index(name); !exists {
			return
		}
	}
	rows := made.rows()
	for _, kept := range f.reports {
		rows += kept.rows()
	}
	if len(f.reports) >= maxReports || rows > maxRows {
		clear(f.reports)
	}
	f.reports[query] = made
}

func (m cachedReport) rows() int { return len(m.report.Stories) + len(m.report.Ageing) }

func (f *Flow) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.reports)
}

// WithNames adds the names to finished stories of a report on all, which come without.
func (f *Flow) WithNames(ctx context.Context, some []domain.FlowStory) ([]domain.FlowStory, error) {
	named := slices.Clone(some)
	return named, f.addNames(ctx, named, nil)
}

// addNames fills in the names of finished stories, and the numbers of these and of ageing ones.
func (f *Flow) addNames(ctx context.Context, stories []domain.FlowStory, ageing []domain.FlowAge) error {
	keyOf := func(s domain.FlowStory) domain.StoryKey { return domain.StoryKey{Project: s.Project, ID: s.StoryID} }
	ageOf := func(a domain.FlowAge) domain.StoryKey { return domain.StoryKey{Project: a.Project, ID: a.Item.StoryID} }
	known, err := f.store.StoryNames(ctx, append(domain.Map(stories, keyOf), domain.Map(ageing, ageOf)...))
	for i, s := range stories {
		stories[i].NamedStory = known[keyOf(s)]
	}
	for i, a := range ageing {
		ageing[i].Number = known[ageOf(a)].Number
	}
	return err
}

func (f *Flow) Story(ctx context.Context, number int64) (domain.StoryKey, error) {
	key, err := f.store.StoryOf(ctx, number)
	return key, notFound(err, "There is no such story.")
}

// boards returns the boards of projects, or of all without names, in the registry's order, each once. For a single
// project it asks no other.
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

// cachedForecast returns the forecast for a sample, computed once. The caller holds counting.
func (f *Flow) cachedForecast(sample []int, make func() int) int {
	h := fnv.New64a()
	for _, n := range sample {
		_, _ = fmt.Fprintf(h, "%d ", n)
	}
	key := h.Sum64()
	promised, known := f.forecasts[key]
	if !known {
		if len(f.forecasts) >= maxPromises {
			clear(f.forecasts)
		}
		promised = make()
		f.forecasts[key] = promised
	}
	return promised
}

// Sentence describes the flow of projects, or of all without names, on the days of a zone in a sentence.
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

// Forecast says in sentences how many stories of a project will be finished in the next two weeks, and when a number of
// items will be; 0 items means its open stories.
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
