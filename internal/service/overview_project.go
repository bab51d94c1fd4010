package service

import (
	"context"
	"slices"
	"time"

	"switchyard/internal/domain"
)

const (
	// othersPatience is how long the page of one project waits for the state of the others.
	othersPatience = 20 * time.Millisecond
	// othersDelay is how much later the others are fetched if nothing is known of them yet, so that after a start the requested page
	// comes first.
	othersDelay = 100 * time.Millisecond
)

// ProjectSnapshot is the state of one project.
type ProjectSnapshot struct {
	Project  domain.Project
	Active   bool
	Pipeline domain.ProjectPipeline
	Stuck    []string // ids of stories
	Charts   domain.Charts
	Agents   []domain.Agent // alive ones that are assigned to it
}

// Project returns the state of one project. It waits for the pipeline of no other project. It returns NotFound.
func (o *Overview) Project(ctx context.Context, name string) (ProjectSnapshot, error) {
	s, i, err := o.withProject(ctx, name)
	if err != nil {
		return ProjectSnapshot{}, err
	}
	p := ProjectSnapshot{
		Project: s.Registry.Projects[i], Active: s.Registry.Active == name, Pipeline: s.Pipelines[0], Stuck: s.Alerts.Stuck[name], Charts: s.Charts[0],
	}
	for _, agent := range o.agents.Alive() {
		if agent.Project == name {
			p.Agents = append(p.Agents, agent)
		}
	}
	return p, nil
}

// StoryAlert returns the alert of a story on the project's board, nil if there is none.
func (o *Overview) StoryAlert(ctx context.Context, project, id string) (*domain.Alert, error) {
	s, _, err := o.withProject(ctx, project)
	if err != nil {
		return nil, err
	}
	return o.alerts.ofStory(s.Pipelines[0], id), nil
}

// withProject returns the part of a snapshot for one project, and its index i in the registry.
func (o *Overview) withProject(ctx context.Context, name string) (part *Snapshot, i int, err error) {
	o.pipelines.askFirst(name, o.pipelines.recentAge(quietAge))
	patience, delay := othersPatience, time.Duration(0)
	if !o.known.Load() {
		patience, delay = 0, othersDelay
	}
	done, err := o.taking.do(patience, func() error {
		time.Sleep(delay)
		_, err := o.Snapshot(context.WithoutCancel(ctx))
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	if !done {
		return o.takeProject(ctx, name)
	}
	s, err := o.Snapshot(ctx)
	if err != nil {
		return nil, 0, err
	}
	i, found := s.Registry.Index(name)
	if !found {
		return nil, 0, projectNotFound(name)
	}
	return &Snapshot{Registry: s.Registry, Pipelines: s.Pipelines[i : i+1], Alerts: s.Alerts, Charts: s.Charts[i : i+1]}, i, nil
}

// takeProject does what withProject does without taking a snapshot of all projects.
func (o *Overview) takeProject(ctx context.Context, name string) (part *Snapshot, i int, err error) {
	registry, pipeline, err := o.pipelines.recentOf(ctx, name, quietAge)
	if err != nil {
		return nil, 0, err
	}
	i, _ = registry.Index(name)
	part = &Snapshot{Registry: registry, Pipelines: []domain.ProjectPipeline{pipeline}}
	part.Alerts = domain.NewAlerts(slices.DeleteFunc(o.alerts.ofProject(pipeline), func(a domain.Alert) bool { return a.Kind != domain.AlertStuck }))
	charts, err := o.charts.of(ctx, pipeline)
	part.Charts = []domain.Charts{charts}
	return part, i, err
}
