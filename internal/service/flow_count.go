package service

import (
	"slices"
	"sort"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/flow"
)

// flowCount adds up the flow of several projects, day by day.
type flowCount struct {
	query   domain.FlowQuery
	today   int     // as in flow.Day
	first   int     // the first day that is counted: grading needs days before the window
	begins  []int64 // when each of these days begins, up to today, in Unix milliseconds
	past    []int   // how many stories were finished on each of them
	arrived []int
	stages  []map[stageCount]int // changes in how many stories are in each stage at the end of each day of the window
	reached []map[int]int        // likewise, in how many got as far as a stage of work, by its index in work

	finished []domain.FlowStory // without ids and names
	items    int                // stories before the done stages
	since    int64              // the first known move, 0 for none
	ageing   []domain.FlowAge
	work     []string // the names of the stages of work, in the order of the boards
	titles   []string // their titles
}

// stageCount is what is counted separately: a stage of that name may be one of work on one board only.
type stageCount struct {
	name string
	work bool
}

func newFlowCount(q domain.FlowQuery, now time.Time) *flowCount {
	c := &flowCount{query: q, today: flow.Day(now)}
	days := 2*q.Days + flow.GradedDays
	c.first = c.today - days + 1
	for i := range days {
		c.begins = append(c.begins, flow.Begins(c.first+i, now.Location()).UnixMilli())
	}
	c.past, c.arrived = make([]int, days), make([]int, days)
	c.stages, c.reached = make([]map[stageCount]int, q.Days+1), make([]map[int]int, q.Days)
	for i := range c.stages {
		c.stages[i] = map[stageCount]int{}
	}
	for i := range c.reached {
		c.reached[i] = map[int]int{}
	}
	return c
}

// day returns the index of the day of a time, negative before the first. Times after today, from a project server with
// a wrong clock, count as today.
func (c *flowCount) day(ms int64) int {
	return sort.Search(len(c.begins), func(i int) bool { return c.begins[i] > ms }) - 1
}

func (c *flowCount) windowStart() int { return len(c.past) - c.query.Days }

// add adds a board with the visits of its stories. If the board is unknown, because its server has only events or has
// not answered yet, it is made up from the visits.
func (c *flowCount) add(p *domain.ProjectPipeline, visits *domain.ProjectVisits) {
	stages := p.Stages
	if len(stages) == 0 {
		stages = visits.Board()
	}
	if len(stages) == 0 {
		return
	}
	workflow := domain.NewWorkflow(p.Board.Layout, stages)
	columns, started := make([]int, len(stages)), map[string]int64{} // of those in work
	for i := workflow.From; i < workflow.To; i++ {
		if columns[i] = slices.Index(c.work, stages[i].Name); columns[i] < 0 {
			columns[i], c.work = len(c.work), append(c.work, stages[i].Name)
			c.titles = append(c.titles, stages[i].Title())
		}
		for j := range stages[i].Items {
			started[stages[i].Items[j].StoryID] = 0
		}
	}
	for story := range visits.Follow(workflow, 0) {
		c.addStory(p.Project, story)
		c.reach(story, columns)
		for _, stay := range story.Stays {
			c.stay(stageCount{stay.Stage, workflow.IsWork(stay.At)}, stay)
		}
		if _, inWork := started[story.StoryID]; inWork {
			started[story.StoryID] = story.Started
		}
	}
	c.addOpen(p.Project, workflow, started)
}

func (c *flowCount) addStory(project string, s *domain.StoryFlow) {
	if s.FirstMove > 0 && (c.since == 0 || s.FirstMove < c.since) {
		c.since = s.FirstMove
	}
	at := c.day(s.Finished)
	if c.counts(s) {
		c.arrived[max(c.day(s.Arrived), c.windowStart())]++
	}
	if s.Finished == 0 || at < 0 {
		return
	}
	c.past[at]++
	if at >= c.windowStart() {
		c.finished = append(c.finished, domain.FlowStory{
			Project: project, StoryID: s.StoryID, Started: time.UnixMilli(s.Started),
			Finished: time.UnixMilli(s.Finished), Days: c.days(s.Started, at),
		})
	}
}

// reach counts how far a story came by the ends of the days of the window, until it was finished.
func (c *flowCount) reach(s *domain.StoryFlow, columns []int) {
	if !c.counts(s) {
		return
	}
	before := -1
	for _, r := range s.Reached {
		column := columns[r.Stage]
		if s.Finished > 0 && r.MS > s.Finished {
			break
		}
		if before >= 0 && column <= before { // boards that are added up may order their stages differently
			continue
		}
		day := max(0, c.day(r.MS)-c.windowStart())
		if before >= 0 {
			c.reached[day][before]--
		}
		c.reached[day][column]++
		before = column
	}
	if s.Finished > 0 && before >= 0 {
		c.reached[c.day(s.Finished)-c.windowStart()][before]--
	}
}

// counts reports whether a story came into work, was in work, or was finished within the window.
func (c *flowCount) counts(s *domain.StoryFlow) bool {
	switch start := c.windowStart(); {
	case s.Arrived == 0:
		return false
	case s.Finished > 0:
		return c.day(s.Finished) >= start
	default:
		return s.Working || c.day(s.Arrived) >= start
	}
}

// days returns the number of days from a start to the day of an index, both included.
func (c *flowCount) days(start int64, to int) int {
	return max(1, c.first+to-flow.Day(time.UnixMilli(start).In(c.query.Zone))+1)
}

// stay counts a visit at the end of each day of the window on which it lasted.
func (c *flowCount) stay(stage stageCount, v domain.Stay) {
	from, to := max(0, c.day(v.From)-c.windowStart()), c.query.Days
	switch {
	case v.From == 0 && v.To > 0: // since when it was there is unknown
		return
	case v.From == 0:
		from = c.query.Days - 1
	}
	if v.To > 0 {
		to = min(to, c.day(v.To)-c.windowStart())
	}
	if from < to {
		c.stages[from][stage]++
		c.stages[to][stage]--
	}
}

// addOpen adds what is on the board before the done stage; started is when the stories in work were started.
func (c *flowCount) addOpen(project string, workflow domain.Workflow, started map[string]int64) {
	for i := range workflow.Stages {
		stage := &workflow.Stages[i]
		if i < workflow.Done {
			c.items += len(stage.Items)
		}
		if !workflow.IsWork(i) {
			continue
		}
		for at := range stage.Items {
			item := &stage.Items[at]
			start := started[item.StoryID]
			if start == 0 && !item.Since.IsZero() {
				start = item.Since.UnixMilli()
			}
			age := domain.FlowAge{Project: project, Stage: stage, Item: item}
			if start > 0 {
				age.Start, age.Days = time.UnixMilli(start), c.days(start, len(c.past)-1)
			}
			c.ageing = append(c.ageing, age)
		}
	}
}
