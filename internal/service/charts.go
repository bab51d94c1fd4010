package service

import (
	"context"
	"fmt"
	"sort"
	"time"

	"switchyard/internal/domain"
)

// Bounds of what charts are drawn from. How long a story stood in a stage is known only when it came there in this time
// as well.
const (
	historyAge    = 2 * domain.ChartDays * 24 * time.Hour // since the gateway received it
	historyEvents = 200_000                               // the newest
)

// chartPatience is how long a reader waits for charts. Reading the stored events for the first time takes about 10 µs
// each; from then on only what is new is read.
const chartPatience = 100 * time.Millisecond

// Charts are how the stories of every project went on, as far as somebody has asked.
type Charts struct {
	events    *Events
	turn      chan struct{} // holds one value while the rest is worked on
	upTo      int64         // the id up to which events are taken in
	day       time.Time
	byProject map[string]*projectHistory
}

// projectHistory is one project's history, and the charts that were last drawn from it.
type projectHistory struct {
	domain.StageHistory
	charts domain.Charts
	drawn  drawn
}

// drawn is what charts depend on, other than which moves there are.
type drawn struct {
	day   time.Time
	moves int
	first *domain.Stage // of an answer, which never changes
}

// Draw returns the charts of each of these projects, in their order; empty ones where the stages are not known, and
// for all when they take too long: then they are there a little later.
func (s *Charts) Draw(ctx context.Context, pipelines []domain.ProjectPipeline) ([]domain.Charts, error) {
	type result struct {
		charts []domain.Charts
		err    error
	}
	done := make(chan result, 1)
	go func() {
		charts, err := s.draw(context.WithoutCancel(ctx), pipelines)
		done <- result{charts, err}
	}()
	late := time.NewTimer(chartPatience)
	defer late.Stop()
	select {
	case r := <-done:
		return r.charts, r.err
	case <-late.C:
		return make([]domain.Charts, len(pipelines)), nil
	}
}

func (s *Charts) draw(ctx context.Context, pipelines []domain.ProjectPipeline) (charts []domain.Charts, err error) {
	defer func() {
		if cause := recover(); cause != nil { // whoever waits reports it
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	now := time.Now()
	if err := s.catchUp(ctx, now); err != nil {
		return nil, err
	}
	charts = make([]domain.Charts, len(pipelines))
	for i, p := range pipelines {
		if len(p.Stages) == 0 {
			continue
		}
		history := s.of(p.Project)
		if key := (drawn{s.day, history.Len(), &p.Stages[0]}); history.drawn != key {
			history.charts, history.drawn = history.StageHistory.Charts(p.Stages, now), key
		}
		charts[i] = history.charts
	}
	return charts, nil
}

func (s *Charts) of(project string) *projectHistory {
	history := s.byProject[project]
	if history == nil {
		history = &projectHistory{}
		s.byProject[project] = history
	}
	return history
}

// catchUp brings s up to the newest event. What it has taken in stays when it fails.
func (s *Charts) catchUp(ctx context.Context, now time.Time) error {
	oldest := now.Add(-historyAge)
	if s.byProject == nil {
		first, err := s.firstSince(ctx, oldest)
		if err != nil {
			return err
		}
		s.byProject, s.upTo = map[string]*projectHistory{}, first
	}
	if day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location()); !day.Equal(s.day) {
		for _, history := range s.byProject {
			history.Forget(now, oldest)
		}
		s.day = day
	}
	for last := s.events.LastID(); s.upTo < last; {
		page, err := s.events.Page(ctx, domain.EventQuery{After: s.upTo, Limit: 1000})
		if err != nil {
			return err
		}
		if len(page.Events) == 0 {
			break
		}
		for _, e := range page.Events {
			s.of(e.Project).Add(e)
			s.upTo = e.ID
		}
	}
	return nil
}

// firstSince returns an id after which all events came since then, and at most historyEvents of them.
func (s *Charts) firstSince(ctx context.Context, since time.Time) (int64, error) {
	last := s.events.LastID()
	first := max(0, last-historyEvents)
	var failed error
	steps := sort.Search(int(last-first), func(i int) bool {
		page, err := s.events.Page(ctx, domain.EventQuery{After: first + int64(i), Limit: 1})
		if err != nil {
			failed = err
		}
		return len(page.Events) == 0 || page.Events[0].ReceivedAtMS >= since.UnixMilli()
	})
	return first + int64(steps), failed
}
