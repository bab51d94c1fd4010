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
	today   int     // as flow.Day has it
	first   int     // the first day that is counted: grading needs days before the window
	begins  []int64 // when each of these days begins, up to today, in Unix milliseconds
	past    []int   // what was finished on each of them
	arrived []int
	stages  []map[stageCount]int // changes of how many stories are in each at the end of each day of the window
	reached []map[int]int        // likewise, of how many came into a stage of work, by its index in work, and no further

	finished []domain.FlowStory // without ids and names
	items    int                // stories before the done stages
	since    int64              // the first known move, 0 for none
	ageing   []domain.FlowAge
	work     []string // the names of the stages of work, in the order of the boards
	titles   []string // theirs
}

// stageCount is what is counted apart: a stage's name may be one of work on one board only.
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

// day returns the index of the day on which a time is, negative before the first. What a project server with a wrong
// clock says of tomorrow was today.
func (c *flowCount) day(ms int64) int {
	return sort.Search(len(c.begins), func(i int) bool { return c.begins[i] > ms }) - 1
}

// windowStart is the index of the window's first day.
func (c *flowCount) windowStart() int { return len(c.past) - c.query.Days }

func (c *flowCount) add(p flowBoard) {
	if len(p.Stages) == 0 {
		return
	}
	places := newFlowPlaces(p)
	for i := places.From; i < places.To; i++ {
		at := slices.Index(c.work, p.Stages[i].Name)
		if at < 0 {
			at, c.work = len(c.work), append(c.work, p.Stages[i].Name)
			c.titles = append(c.titles, p.Stages[i].Title())
		}
		places.columns = append(places.columns, at)
	}
	started := map[int64]int64{} // those in work
	for _, stage := range p.Stages[places.From:places.To] {
		for i := range stage.Items {
			started[p.known.open[stage.Items[i].StoryID]] = 0
		}
	}
	for rest := p.known.visits; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].story == rest[0].story {
			n++
		}
		story := places.follow(rest[:n])
		c.addStory(p.Project, rest[0].story, story)
		c.reach(story)
		for _, v := range rest[:n] {
			if place := places.of[v.stage]; place >= 0 {
				c.stay(stageCount{p.known.names[v.stage], places.IsWork(place)}, v)
			}
		}
		if _, inWork := started[rest[0].story]; inWork {
			started[rest[0].story] = story.started
		}
		rest = rest[n:]
	}
	c.addOpen(p, places, started)
}

func (c *flowCount) addStory(project string, number int64, s storyFlow) {
	if s.firstMove > 0 && (c.since == 0 || s.firstMove < c.since) {
		c.since = s.firstMove
	}
	at := c.day(s.finished)
	if c.counts(s) {
		c.arrived[max(c.day(s.arrived), c.windowStart())]++
	}
	if s.finished == 0 || at < 0 {
		return
	}
	c.past[at]++
	if at >= c.windowStart() {
		c.finished = append(c.finished, domain.FlowStory{
			Number: number, Project: project, Started: time.UnixMilli(s.started), Finished: time.UnixMilli(s.finished),
			Days: c.days(s.started, at),
		})
	}
}

// reach counts how far a story came by the ends of the days of the window, until it was finished.
func (c *flowCount) reach(s storyFlow) {
	if !c.counts(s) {
		return
	}
	before := -1
	for _, r := range s.reached {
		if s.finished > 0 && r.at > s.finished {
			break
		}
		day := max(0, c.day(r.at)-c.windowStart())
		if before >= 0 {
			c.reached[day][before]--
		}
		c.reached[day][r.column]++
		before = r.column
	}
	if s.finished > 0 && before >= 0 {
		c.reached[c.day(s.finished)-c.windowStart()][before]--
	}
}

// counts reports whether a story came into work, or was in work, or was finished within the window.
func (c *flowCount) counts(s storyFlow) bool {
	switch start := c.windowStart(); {
	case s.arrived == 0:
		return false
	case s.finished > 0:
		return c.day(s.finished) >= start
	default:
		return s.working || c.day(s.arrived) >= start
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

// addOpen adds what is on the board before the done stage; started is when what is in work was started.
func (c *flowCount) addOpen(p flowBoard, places flowPlaces, started map[int64]int64) {
	for i := range p.Stages {
		stage := &p.Stages[i]
		if i < places.Done {
			c.items += len(stage.Items)
		}
		if !places.IsWork(i) {
			continue
		}
		for at := range stage.Items {
			item := &stage.Items[at]
			number := p.known.open[item.StoryID]
			start := started[number]
			if start == 0 && !item.Since.IsZero() {
				start = item.Since.UnixMilli()
			}
			age := domain.FlowAge{Number: number, Project: p.Project, Stage: stage, Item: item}
			if start > 0 {
				age.Start, age.Days = time.UnixMilli(start), c.days(start, len(c.past)-1)
			}
			c.ageing = append(c.ageing, age)
		}
	}
}
