package service

import (
	"context"
	"fmt"
	"maps"

	"switchyard/internal/domain"
)

// madeReport is the last report for a query, and what it was made of: as long as that is held, no other board is at its
// address.
type madeReport struct {
	report *domain.FlowReport
	of     string // the versions of visits and the addresses of boards
	boards []*domain.PipelineSummary
}

// keep keeps a report of projects in the place of the last one for its query.
func (f *Flow) keep(query string, projects []string, made madeReport) {
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

func (m madeReport) rows() int { return len(m.report.Stories) + len(m.report.Ageing) }

// forget drops what is of removed projects.
func (f *Flow) forget() {
	registry := f.pipelines.projects.Registry()
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.projects {
		if _, exists := registry.Index(name); !exists {
			delete(f.projects, name)
			clear(f.reports)
		}
	}
}

func (f *Flow) known(ctx context.Context, names []string) ([]*flowProject, error) {
	known, missing := f.kept(names)
	if len(missing) > fewProjects {
		_, err := shared(ctx, &f.reads, "", func(ctx context.Context) (map[string]*flowProject, error) {
			return f.read(ctx, "", names)
		})
		if err != nil {
			return nil, err
		}
		known, missing = f.kept(names) // another caller may have read others, or before a change
	}
	for _, i := range missing {
		name := names[i]
		read, err := shared(ctx, &f.reads, fmt.Sprint(f.visits.Version(name), " ", name),
			func(ctx context.Context) (map[string]*flowProject, error) { return f.read(ctx, name, []string{name}) })
		if err != nil {
			return nil, err
		}
		known[i] = read[name]
	}
	return known, nil
}

// kept returns what is in memory of projects, and the indexes of those of which that is not current.
func (f *Flow) kept(names []string) (known []*flowProject, missing []int) {
	known = make([]*flowProject, len(names))
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, name := range names {
		if p := f.projects[name]; p != nil && p.version == f.visits.Version(name) {
			known[i] = p
		} else {
			missing = append(missing, i)
		}
	}
	return known, missing
}

// read reads the visits of a project, or of several where it is "".
func (f *Flow) read(ctx context.Context, project string, names []string) (map[string]*flowProject, error) {
	read := make(map[string]*flowProject, len(names))
	for _, name := range names {
		read[name] = &flowProject{version: f.visits.Version(name), open: map[string]int64{}}
	}
	err := f.store.FlowVisits(ctx, project, func(v domain.FlowVisit) {
		if p := read[v.Project]; p != nil {
			p.add(v)
		}
	})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	maps.Copy(f.projects, read)
	f.mu.Unlock()
	f.forget() // a project may have been removed meanwhile
	return read, nil
}
