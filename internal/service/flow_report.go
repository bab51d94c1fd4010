package service

import (
	"cmp"
	"slices"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/flow"
)

// report makes the report, its stories without ids and names. promise keeps the forecasts that are graded.
func (c *flowCount) report(promise func(sample []int, make func() int) int) *domain.FlowReport {
	r := &domain.FlowReport{Ahead: c.query.Ahead, Items: c.query.Items, Ageing: c.ageing, Work: c.work, Titles: c.titles}
	r.Items = cmp.Or(r.Items, min(max(domain.MinFlowItems, c.items), domain.MaxFlowItems))
	if c.since > 0 {
		r.Since = time.UnixMilli(c.since).In(c.query.Zone)
	}
	slices.SortFunc(c.finished, func(a, b domain.FlowStory) int {
		return cmp.Or(b.Finished.Compare(a.Finished), cmp.Compare(a.StoryID, b.StoryID))
	})
	var took []int
	for i, s := range c.finished {
		if took = append(took, s.Days); i < domain.MaxFlowStories || c.query.All {
			r.Stories = append(r.Stories, s)
		}
	}
	r.More = len(c.finished) - len(r.Stories)
	if at, ok := flow.Percentiles(took); ok {
		r.Percentiles = &at
	}
	c.reportDays(r)
	c.reportAges(r)
	c.forecast(r, promise)
	return r
}

func (c *flowCount) reportDays(r *domain.FlowReport) {
	in, furthest := map[stageCount]int{}, make([]int, len(c.work))
	finished := 0
	for i := range c.query.Days {
		day := c.windowStart() + i
		d := domain.FlowDay{
			Day: flow.DayName(c.first + day), Finished: c.past[day], Arrived: c.arrived[day],
			Stages: map[string]int{}, Work: map[string]int{},
		}
		for stage, change := range c.stages[i] {
			in[stage] += change
		}
		for stage, n := range in {
			if n > 0 {
				d.Stages[stage.name] += n
			}
			if n > 0 && stage.work {
				d.Work[stage.name] += n
			}
		}
		for column, change := range c.reached[i] {
			furthest[column] += change
		}
		finished += d.Finished
		d.Reached = make([]int, len(c.work))
		for column, sum := len(c.work)-1, finished; column >= 0; column-- {
			sum += furthest[column]
			d.Reached[column] = sum
		}
		r.Days = append(r.Days, d)
	}
}

func (c *flowCount) reportAges(r *domain.FlowReport) {
	slices.SortFunc(r.Ageing, func(a, b domain.FlowAge) int {
		// On one day, the first that started; one with an unknown start is last.
		return cmp.Or(cmp.Compare(b.Days, a.Days), a.Start.Compare(b.Start), cmp.Compare(a.Project, b.Project),
			cmp.Compare(a.Item.StoryID, b.Item.StoryID))
	})
	if r.Percentiles == nil {
		return
	}
	for i := range r.Ageing {
		for level, at := range r.Percentiles {
			if r.Ageing[i].Days > at {
				r.Ageing[i].Over = flow.Levels[level]
			}
		}
	}
}

func (c *flowCount) forecast(r *domain.FlowReport, promise func(sample []int, make func() int) int) {
	if c.since == 0 {
		return
	}
	known := max(0, c.day(c.since)) // the first day with data
	past := c.past[known : len(c.past)-1]
	sample := past[max(0, len(past)+1-c.query.Days):]
	r.Sample = len(sample)
	for _, n := range sample {
		r.Finished += n
	}
	if flow.CanForecast(sample) {
		many, when := flow.HowMany(sample, r.Ahead), flow.When(sample, r.Items)
		r.HowMany, r.When = &many, &when
	}
	graded := flow.Grade(past, c.query.Days, func(day int, make func() int) int {
		return promise(past[max(0, day+1-c.query.Days):day+1], make)
	})
	for _, g := range graded {
		r.Graded = append(r.Graded, domain.FlowGrade{
			Day: flow.DayName(c.first + known + g.Day), Promised: g.Promised, Came: g.Came,
		})
	}
}
