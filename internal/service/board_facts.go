package service

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

// boardFacts is a project's last good pipeline with everything derived from it and the visits of its stories. It is
// shared and never changed, only replaced.
type boardFacts struct {
	answer   *domain.PipelineAnswer
	version  uint64                 // of the visits
	until    time.Time              // when it must be derived again even if nothing has changed
	stages   []domain.Stage         // of answer, with known times added
	workflow domain.Workflow        // of answer's stages
	text     func() json.RawMessage // of stages, made once, on first use
	summary  domain.PipelineSummary
	limits   []time.Duration // how long stories may be in each stage of work
	charts   domain.Charts   // empty while the visits are unknown
	alerts   []domain.Alert
	searched func() *searchIndex // prepares the board for searches, once
}

// deriveRetry is how soon to retry when the visits cannot be read.
const deriveRetry = time.Second

// isOutdated reports whether it must be derived again, given the current version of the visits.
func (d *boardFacts) isOutdated(version uint64, now time.Time) bool {
	return d.answer != nil && (d.version != version || !now.Before(d.until))
}

// derive derives everything from an answer; last is what was derived before, empty for nothing. If visits is nil, they
// could not be read, and what was known of them is shown.
func derive(
	visits *domain.ProjectVisits, version uint64, project string, answer *domain.PipelineAnswer, last *boardFacts,
) *boardFacts {
	now := clock.Now()
	next := &boardFacts{
		answer: answer, version: version, stages: answer.Stages,
		workflow: domain.NewWorkflow(answer.Board.Layout, answer.Stages),
	}
	next.text = sync.OnceValue(func() json.RawMessage { return wire.WithTimes(answer.Raw, next.stages) })
	known := visits != nil
	switch {
	case known:
		next.stages = visits.Times(answer.Stages)
		if last.drawsSame(next, now) {
			next.charts = last.charts
		} else if len(next.stages) > 0 {
			next.charts = visits.Charts(next.workflow, now)
		}
	case last.answer == answer:
		next.stages, next.text, next.charts = last.stages, last.text, last.charts
	default:
		next.charts = last.charts
	}
	next.summary = domain.Summarize(next.stages)
	if known {
		next.summary.Moved = visits.LastMove()
		next.limits = visits.StuckLimits(next.stages[next.summary.From:next.summary.To], now)
	} else {
		next.summary.Moved = last.summary.Moved // its limits are the usual ones
	}
	shown := domain.ProjectPipeline{
		Project: project, Stages: next.stages, Summarized: &next.summary, Limits: next.limits,
		Faults: answer.Faults, Board: answer.Board,
	}
	next.alerts, next.until = domain.FindAlerts(&shown, now)
	again := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, now.Location()) // tomorrow
	if !known {
		again = now.Add(deriveRetry)
	}
	next.until = slices.MinFunc([]time.Time{next.until, again}, time.Time.Compare)
	next.searched = sync.OnceValue(func() *searchIndex { return newSearchIndex(next.stages) })
	return next
}

func (d *boardFacts) drawsSame(next *boardFacts, now time.Time) bool {
	sameName := func(a, b domain.Stage) bool { return a.Name == b.Name }
	return d.version == next.version && now.Before(d.until) &&
		slices.EqualFunc(d.stages, next.stages, sameName)
}
