package domain

import (
	"math"
	"slices"
	"time"
)

// ChartDays is how many days charts cover, including today.
const ChartDays = 14

// Charts show the progress of a project's stories in the last ChartDays days. They are shared and must not be changed.
type Charts struct {
	Days   []DayCount  // ChartDays of them, today last
	Before int         // how many stories were finished in the same number of days before these
	Stages []StageTime // of the stages of work, in their order
	ToDone StageTime   // from entering the first stage of work until finished; without a name

	visits [][]int32 // the seconds from which Stages were computed, sorted; shorter than Stages if the last ones have none
	toDone []int32
}

// DayCount is how many stories were finished on a day.
type DayCount struct {
	Day      time.Time // the beginning of the day
	Finished int
}

// StageTime is how long stories were in a stage that they have left.
type StageTime struct {
	Stage  string // its name
	Median time.Duration
	Visits int // the number of visits; the median is 0 if there are none
}

// Finishes reports whether a transition from one stage to another finishes a story: it goes from the stages of work
// (see WorkStages), or a stage before them, to a stage after them.
func Finishes(stages []Stage, from, to string) bool {
	_, done := WorkStages(stages)
	index := func(name string) int { return slices.IndexFunc(stages, func(s Stage) bool { return s.Name == name }) }
	return index(from) < done && index(to) >= done && len(stages) > 0
}

// chartStart returns the beginning of the first day in charts drawn at now.
func chartStart(now time.Time) time.Time {
	return time.Date(now.Year(), now.Month(), now.Day()-ChartDays+1, 0, 0, 0, 0, now.Location())
}

// unknownStart means that it is unknown when work on a story began.
const unknownStart = math.MinInt64

// Charts returns charts of the last ChartDays days in now's time zone. stages are the project's.
func (p *ProjectVisits) Charts(stages []Stage, now time.Time) Charts {
	start := chartStart(now)
	days := make([]DayCount, ChartDays)
	for i := range days {
		// Days may have 23 hours.
		days[i].Day = time.Date(start.Year(), start.Month(), start.Day()+i, 0, 0, 0, 0, start.Location())
	}
	finishes := make([][]bool, len(p.stages)) // by the indexes of the stages from and to
	for from := range p.stages {
		finishes[from] = make([]bool, len(p.stages))
		for to := range p.stages {
			finishes[from][to] = Finishes(stages, p.stages[from], p.stages[to])
		}
	}
	visits, toDone := make([][]int32, len(p.stages)), []int32{}
	began := map[uint32]int64{} // when work on a story began
	from, to := WorkStages(stages)
	isWork := make([]bool, len(p.stages))
	for i, name := range p.stages {
		isWork[i] = slices.ContainsFunc(stages[from:to], func(s Stage) bool { return s.Name == name })
	}
	earlier, before := start.AddDate(0, 0, -ChartDays).UnixMilli(), 0
	for _, t := range p.transitions {
		begin, seen := began[t.story]
		if !seen {
			begin = unknownStart
			switch {
			case isWork[t.from] && t.visitedMS >= 0:
				begin = t.atMS - t.visitedMS
			case isWork[t.to] && !isWork[t.from]:
				begin = t.atMS
			}
		}
		if finishes[t.from][t.to] {
			delete(began, t.story)
		} else if seen || isWork[t.from] || isWork[t.to] {
			began[t.story] = begin
		}
		if t.atMS < start.UnixMilli() {
			if t.atMS >= earlier && finishes[t.from][t.to] {
				before++
			}
			continue
		}
		if t.visitedMS >= 0 {
			visits[t.from] = append(visits[t.from], seconds(t.visitedMS))
		}
		if finishes[t.from][t.to] {
			after, _ := slices.BinarySearchFunc(days, t.atMS, func(d DayCount, ms int64) int {
				if d.Day.UnixMilli() > ms {
					return 1
				}
				return -1
			})
			days[after-1].Finished++
			if begin != unknownStart {
				toDone = append(toDone, seconds(t.atMS-begin))
			}
		}
	}
	c := Charts{Days: days, Before: before, ToDone: stageTime("", toDone), toDone: toDone}
	p.chartOlder(&c, start, finishes)
	for _, stage := range stages[from:to] {
		var took []int32
		if i := slices.Index(p.stages, stage.Name); i >= 0 {
			took = visits[i]
		}
		c.Stages, c.visits = append(c.Stages, stageTime(stage.Name, took)), append(c.visits, took)
	}
	return c
}

// seconds converts milliseconds to whole seconds, limited to 0 to 2^31-1.
func seconds(ms int64) int32 { return int32(min(max(0, ms/1000), math.MaxInt32)) }

// stageTime returns the StageTime of visits that took so many seconds. It sorts took.
func stageTime(stage string, took []int32) StageTime {
	t := StageTime{Stage: stage, Visits: len(took)}
	if len(took) == 0 {
		return t
	}
	slices.Sort(took)
	middle := time.Duration(took[len(took)/2])
	if len(took)%2 == 0 {
		middle = (middle + time.Duration(took[len(took)/2-1])) * time.Second / 2
	} else {
		middle *= time.Second
	}
	t.Median = middle
	return t
}
