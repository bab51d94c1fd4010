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
	// FlowVisits calls yield with the visits of a project, those of each story in order.
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

// madeReport is a report that is kept, and what it was made of: as long as that is held, no other board is at its
// address.
type madeReport struct {
	report *domain.FlowReport
	boards []*domain.PipelineSummary
}

const (
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
		_, err := f.project(ctx, p.Name)
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
	f.mu.Lock()
	kept, found := f.reports[key.String()]
	f.mu.Unlock()
	if found {
		return kept.report, nil
	}
	return shared(ctx, &f.makes, key.String(), func(ctx context.Context) (*domain.FlowReport, error) {
		report, err := f.count(ctx, q, now, projects)
		if err != nil || q.All { // that may be large, and is asked for once
			return report, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.reports) >= maxReports {
			clear(f.reports)
		}
		f.reports[key.String()] = madeReport{report, made}
		return report, nil
	})
}

// count makes a report.
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
	return report, f.name(ctx, report)
}

// Story returns the story of a number in a report.
func (f *Flow) Story(ctx context.Context, number int64) (domain.StoryRef, error) {
	refs, err := f.store.FlowStories(ctx, []int64{number})
	if _, found := refs[number]; err == nil && !found {
		err = domain.Errorf(domain.NotFound, "There is no such story.")
	}
	return refs[number], err
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

// name fills in the ids and names of the finished stories that are listed.
func (f *Flow) name(ctx context.Context, r *domain.FlowReport) error {
	numbers := make([]int64, len(r.Stories))
	for i := range r.Stories {
		numbers[i] = r.Stories[i].Number
	}
	refs, err := f.store.FlowStories(ctx, numbers)
	for i := range r.Stories {
		ref := refs[numbers[i]]
		r.Stories[i].StoryID, r.Stories[i].StoryName = ref.ID, ref.Name
	}
	return err
}

// project returns the current visits of a project.
func (f *Flow) project(ctx context.Context, name string) (*flowProject, error) {
	version := f.visits.Version(name)
	f.mu.Lock()
	known := f.projects[name]
	f.mu.Unlock()
	if known != nil && known.version == version {
		return known, nil
	}
	key := fmt.Sprint(version, " ", name)
	return shared(ctx, &f.reads, key, func(ctx context.Context) (*flowProject, error) {
		p, err := f.read(ctx, name, version)
		if err != nil {
			return nil, err
		}
		registry := f.pipelines.projects.Registry()
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.projects) > 2*len(registry.Projects)+readAtOnce {
			clear(f.projects) // many were removed
		}
		f.projects[name] = p
		return p, nil
	})
}

// read reads the visits of a project.
func (f *Flow) read(ctx context.Context, name string, version uint64) (*flowProject, error) {
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
	err := f.store.FlowVisits(ctx, name, func(v domain.FlowVisit) {
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
	return p, err
}
