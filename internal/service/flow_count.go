package service

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/flow"
)

// flowCount adds up the flow of several projects, day by day.
type flowCount struct {
	query   domain.FlowQuery
	now     time.Time // in the zone of the query
	today   int       // as flow.Day has it
	first   int       // the first day that is counted: grading needs days before the window
	begins  []int64   // when each of these days begins, up to today, in Unix milliseconds
	past    []int     // what was finished on each of them
	arrived []int
	stages  []map[stageCount]int // changes of how many stories are in each at the end of each day of the window

	finished []finishedStory
	items    int   // stories before the done stages
	since    int64 // the first known move, 0 for none
	ageing   []domain.FlowAge
	work     []string // the names of the stages of work, in the order of the boards
}

// stageCount is what is counted apart: a stage's name may be one of work on one board only.
type stageCount struct {
	name string
	work bool
}

type finishedStory struct {
	project     string
	story       int64
	start, done int64 // Unix milliseconds
	days        int
}

func newFlowCount(q domain.FlowQuery, now time.Time) *flowCount {
	c := &flowCount{query: q, now: now, today: flow.Day(now)}
	days := 2*q.Days + flow.GradedDays
	c.first = c.today - days + 1
	for i := range days {
		c.begins = append(c.begins, flow.Begins(c.first+i, now.Location()).UnixMilli())
	}
	c.past, c.arrived, c.stages = make([]int, days), make([]int, days), make([]map[stageCount]int, q.Days+1)
	for i := range c.stages {
		c.stages[i] = map[stageCount]int{}
	}
	return c
}

// day returns the index of the day on which a time is, negative before the first. What a project server with a wrong
// clock says of tomorrow was today.
func (c *flowCount) day(ms int64) int {
	return sort.Search(len(c.begins), func(i int) bool { return c.begins[i] > ms }) - 1
}

// windowStart is the index of the window's first day.
func (c *flowCount) windowStart() int { return len(c.past) - c.query.Days }

// add adds a project.
func (c *flowCount) add(p flowBoard) {
	if len(p.Stages) == 0 {
		return
	}
	places := newFlowPlaces(p)
	for i, s := range p.Stages {
		if places.isWork(i) && !slices.Contains(c.work, s.Name) {
			c.work = append(c.work, s.Name)
		}
	}
	known := map[int64]storyFlow{} // of stories on the board
	onBoard := map[int64]bool{}
	for _, number := range p.known.open {
		onBoard[number] = true
	}
	for rest := p.known.visits; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].story == rest[0].story {
			n++
		}
		story := places.follow(rest[:n])
		c.addStory(p.Project, rest[0].story, story)
		for _, v := range rest[:n] {
			if place := places.of[v.stage]; place >= 0 {
				c.stay(stageCount{p.known.names[v.stage], places.isWork(place)}, v)
			}
		}
		if onBoard[rest[0].story] {
			known[rest[0].story] = story
		}
		rest = rest[n:]
	}
	c.addOpen(p, places, known)
}

func (c *flowCount) addStory(project string, number int64, s storyFlow) {
	if s.firstMove > 0 && (c.since == 0 || s.firstMove < c.since) {
		c.since = s.firstMove
	}
	at := c.day(s.finished)
	if s.arrived > 0 {
		if began := c.day(s.arrived); began >= c.windowStart() {
			c.arrived[began]++
		} else if s.finished == 0 && s.working || s.finished > 0 && at >= c.windowStart() {
			c.arrived[c.windowStart()]++
		}
	}
	if s.finished == 0 || at < 0 {
		return
	}
	c.past[at]++
	if at >= c.windowStart() {
		c.finished = append(c.finished, finishedStory{project, number, s.started, s.finished, c.days(s.started, at)})
	}
}

// days returns how many days there are from a start to the day of an index, both included.
func (c *flowCount) days(start int64, to int) int {
	return max(1, c.first+to-flow.Day(time.UnixMilli(start).In(c.query.Zone))+1)
}

// stay counts a visit at the ends of the days of the window on which it lasted.
func (c *flowCount) stay(stage stageCount, v flowVisit) {
	from, to := max(0, c.day(v.from)-c.windowStart()), c.query.Days
	switch {
	case v.from == 0 && v.to > 0: // nobody knows since when it was there
		return
	case v.from == 0:
		from = c.query.Days - 1
	}
	if v.to > 0 {
		to = min(to, c.day(v.to)-c.windowStart())
	}
	if from < to {
		c.stages[from][stage]++
		c.stages[to][stage]--
	}
}

// addOpen adds what is on the board before the done stage.
func (c *flowCount) addOpen(p flowBoard, places flowPlaces, known map[int64]storyFlow) {
	for i, stage := range p.Stages {
		if i < places.done {
			c.items += len(stage.Items)
		}
		if !places.isWork(i) {
			continue
		}
		for _, item := range stage.Items {
			number := p.known.open[item.StoryID]
			start := known[number].started
			if start == 0 && !item.Since.IsZero() {
				start = item.Since.UnixMilli()
			}
			age := domain.FlowAge{Number: number, Project: p.Project, StoryID: item.StoryID, Stage: stage.Name}
			age.StoryName = item.StoryName
			if start > 0 {
				age.Start, age.Days = time.UnixMilli(start), c.days(start, len(c.past)-1)
			}
			c.ageing = append(c.ageing, age)
		}
	}
}

// report makes the report, the stories without ids and names. promise keeps the forecasts that are graded.
func (c *flowCount) report(promise func(sample []int, make func() int) int) *domain.FlowReport {
	r := &domain.FlowReport{Ahead: c.query.Ahead, Items: c.query.Items, Ageing: c.ageing, Work: c.work}
	if r.Items == 0 {
		r.Items = min(max(domain.MinFlowItems, c.items), domain.MaxFlowItems)
	}
	if c.since > 0 {
		r.Since = time.UnixMilli(c.since).In(c.query.Zone)
	}
	slices.SortFunc(c.finished, func(a, b finishedStory) int {
		return cmp.Or(cmp.Compare(b.done, a.done), cmp.Compare(b.story, a.story))
	})
	var took []int
	for i, s := range c.finished {
		if took = append(took, s.days); i < domain.MaxFlowStories || c.query.All {
			r.Stories = append(r.Stories, domain.FlowStory{
				Number: s.story, Project: s.project, Started: time.UnixMilli(s.start),
				Finished: time.UnixMilli(s.done), Days: s.days,
			})
		}
	}
	r.More = len(c.finished) - len(r.Stories)
	if at, ok := flow.Percentiles(took); ok {
		r.Percentiles = &at
	}
	c.tellDays(r)
	c.tellAges(r)
	c.forecast(r, promise)
	return r
}

func (c *flowCount) tellDays(r *domain.FlowReport) {
	in := map[stageCount]int{}
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
		r.Days = append(r.Days, d)
	}
}

func (c *flowCount) tellAges(r *domain.FlowReport) {
	slices.SortFunc(r.Ageing, func(a, b domain.FlowAge) int {
		// On one day, the first that started; one with an unknown start is last.
		return cmp.Or(cmp.Compare(b.Days, a.Days), a.Start.Compare(b.Start), cmp.Compare(a.Project, b.Project),
			cmp.Compare(a.StoryID, b.StoryID))
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
	known := max(0, c.day(c.since)) // the first day of which something is known
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
	r.Made, r.Came = flow.Grade(past, c.query.Days, func(day int, make func() int) int {
		return promise(past[max(0, day+1-c.query.Days):day+1], make)
	})
}
