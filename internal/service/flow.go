package service

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/flow"
	"switchyard/internal/supervise"
)

type flowStore interface {
	// FlowVisits calls yield with the visits of a project that last or ended at or after a time, those of each story in
	// order.
	FlowVisits(ctx context.Context, project string, since time.Time, yield func(domain.FlowVisit)) error
	// FlowStories returns the ids and names of stories by their numbers.
	FlowStories(ctx context.Context, numbers []int64) (map[int64]domain.StoryRef, error)
}

// Flow tells how long work takes, how much is finished, and when it may be finished, from the visits of stories.
type Flow struct {
	store     flowStore
	visits    *Visits
	pipelines *Pipelines

	mu       sync.Mutex // held while a report is made: others wait for the same work
	projects map[string]*flowProject
	reports  map[string]madeReport
	promises map[uint64]int // forecasts for flow.Grade, by the hash of their samples
}

// madeReport is a report that is kept, and what it was made of: as long as that is held, no other board is at its
// address.
type madeReport struct {
	report *domain.FlowReport
	boards []*domain.PipelineSummary
}

const (
	// flowPast is how long ago visits may have ended that count: the window, and as many days before it for grading.
	flowPast = 2 * domain.MaxFlowDays * 24 * time.Hour
	// maxFlowVisits is how many visits of a project count: all that are kept, and those since these were last counted.
	maxFlowVisits = maxKeptVisits + 50_000
	// maxReports and maxPromises limit what is kept; when there are more, all are made again.
	maxReports, maxPromises = 32, 20_000
	// warmProjects is up to how many projects are read before anybody asks.
	warmProjects = 500
)

func newFlow(store flowStore, visits *Visits, pipelines *Pipelines) *Flow {
	return &Flow{
		store: store, visits: visits, pipelines: pipelines, projects: map[string]*flowProject{},
		reports: map[string]madeReport{}, promises: map[uint64]int{},
	}
}

// Run makes the usual report once, so that the first look does not wait for visits and forecasts of days before today.
func (f *Flow) Run(ctx context.Context) error {
	if !supervise.Sleep(ctx, 2*time.Second) {
		return nil
	}
	projects := f.pipelines.projects.Registry().Projects
	if len(projects) > warmProjects {
		return nil
	}
	for _, p := range projects {
		if ctx.Err() != nil {
			return nil
		}
		f.mu.Lock()
		_, err := f.project(ctx, p.Name)
		f.mu.Unlock()
		if err := unlessLost(err); err != nil {
			return supervise.UnlessEnded(ctx, err)
		}
	}
	_, err := f.Report(ctx, domain.FlowQuery{Days: domain.FlowDays, Ahead: domain.FlowAhead, Zone: time.UTC})
	return supervise.UnlessEnded(ctx, unlessLost(err))
}

// Report returns the report for a query, which is shared and must not be changed. The query's values must be in their
// ranges. It returns NotFound for an unknown project, and Unavailable while the store cannot be reached.
func (f *Flow) Report(ctx context.Context, q domain.FlowQuery) (*domain.FlowReport, error) {
	boards := f.pipelines.Boards(ctx, quietAge)
	chosen, err := chosenProjects(boards.Registry, q.Projects)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := clock.Now().In(q.Zone)
	key := strings.Builder{}
	fmt.Fprintf(&key, "%d %d %d %t %s %d", q.Days, q.Ahead, q.Items, q.All, q.Zone, flow.Day(now))
	projects, made := make([]flowBoard, len(chosen)), make([]*domain.PipelineSummary, len(chosen))
	for i, at := range chosen {
		p := &boards.Pipelines[at]
		known, err := f.project(ctx, p.Project)
		if err != nil {
			return nil, err
		}
		projects[i], made[i] = flowBoard{p, known}, p.Summarized
		// What is derived from a board is replaced when that changes.
		fmt.Fprintf(&key, " %s %d %p", p.Project, known.version, p.Summarized)
	}
	if kept, known := f.reports[key.String()]; known {
		return kept.report, nil
	}
	c := newFlowCount(q, now)
	for _, p := range projects {
		c.add(p)
	}
	report := c.report(f.promise)
	if err := f.name(ctx, c, report); err != nil {
		return nil, err
	}
	if q.All { // it may be large, and is asked for once
		return report, nil
	}
	if len(f.reports) >= maxReports {
		clear(f.reports)
	}
	f.reports[key.String()] = madeReport{report, made}
	return report, nil
}

// Sentence says the flow of a project, or of all for "", in a sentence.
func (f *Flow) Sentence(ctx context.Context, project string) (string, error) {
	q := domain.FlowQuery{Days: domain.FlowDays, Ahead: domain.FlowAhead, Zone: time.UTC}
	if project != "" {
		q.Projects = []string{project}
	}
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
		return fmt.Sprintf("No forecast: %s finished on %s so far; it needs %d of each.",
			domain.Count(r.Finished, "story was", "stories were"), domain.Count(r.Sample, "day", "days"), flow.Enough), nil
	}
	date := "after more than a year"
	if days := r.When[2]; days > 0 {
		date = "by " + clock.Now().UTC().AddDate(0, 0, days).Format("2 January")
	}
	return fmt.Sprintf("%s: 85 %% %s. In %d days, 85 %%: %d or more.", domain.Count(r.Items, "story", "stories"), date,
		r.Ahead, r.HowMany[2]), nil
}

// chosenProjects returns the indexes of projects in the registry, each once; of all without names.
func chosenProjects(registry *domain.Registry, names []string) ([]int, error) {
	var chosen []int
	for i := range registry.Projects {
		if len(names) == 0 {
			chosen = append(chosen, i)
		}
	}
	for _, name := range names {
		i, found := registry.Index(name)
		if !found {
			return nil, projectNotFound(name)
		}
		chosen = append(chosen, i)
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), nil
}

// promise returns the forecast for a sample, which is made once. The caller holds mu.
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

// name fills in the ids and names of the finished stories that are listed.
func (f *Flow) name(ctx context.Context, c *flowCount, r *domain.FlowReport) error {
	numbers := make([]int64, len(r.Stories))
	for i := range r.Stories {
		numbers[i] = c.finished[i].story
	}
	refs, err := f.store.FlowStories(ctx, numbers)
	for i := range r.Stories {
		ref := refs[numbers[i]]
		r.Stories[i].StoryID, r.Stories[i].StoryName = ref.ID, ref.Name
	}
	return err
}

// project returns the current visits of a project. The caller holds mu.
func (f *Flow) project(ctx context.Context, name string) (*flowProject, error) {
	version := f.visits.Version(name)
	if known := f.projects[name]; known != nil && known.version == version {
		return known, nil
	}
	if registry := f.pipelines.projects.Registry(); len(f.projects) > 2*len(registry.Projects)+readAtOnce {
		clear(f.projects) // many were removed
	}
	p := &flowProject{version: version, open: map[string]int64{}}
	index := map[string]uint8{}
	stage := func(name string) uint8 {
		i, known := index[name]
		if !known && len(p.names) < 250 { // visits distinguish 100
			i = uint8(len(p.names))
			index[name], p.names = i, append(p.names, name)
		}
		return i
	}
	err := f.store.FlowVisits(ctx, name, clock.Now().Add(-flowPast), func(v domain.FlowVisit) {
		if len(p.visits) >= maxFlowVisits {
			return
		}
		visit := flowVisit{story: v.Story, from: v.From, to: v.To, stage: stage(v.Stage), git: v.Git}
		if v.Next != "" {
			visit.next = stage(v.Next) + 1
		}
		if v.To == 0 {
			p.open[v.StoryID] = v.Story
		}
		p.visits = append(p.visits, visit)
	})
	if err != nil {
		return nil, err
	}
	f.projects[name] = p
	return p, nil
}
