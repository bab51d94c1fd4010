package domain

import (
	"slices"
	"time"
)

// ChartDays is how many days charts look back over, today included.
const ChartDays = 14

// Charts show how a project's stories moved on in the last ChartDays days. They are shared: nobody may change them.
type Charts struct {
	Days   []DayCount  // ChartDays of them, today the last
	Before int         // how many were finished in as many days before these
	Stages []StageTime // those in which stories are worked on, in their order
}

// DayCount is how many stories were finished on a day.
type DayCount struct {
	Day      time.Time // its beginning
	Finished int
}

// StageTime is how long stories stood in a stage that they have left.
type StageTime struct {
	Stage  string // its name
	Median time.Duration
	Stays  int // how many the median is of; 0 leaves it 0
}

// AddDays adds what other counts for the same days, which may be none at all.
func AddDays(sum, other []DayCount) []DayCount {
	if sum == nil {
		return slices.Clone(other)
	}
	for i := range other {
		sum[i].Finished += other[i].Finished
	}
	return sum
}

// Finishes reports whether a story that moves from one stage to another one is finished by that: it leaves those in
// which stories are worked on, as WorkStages has them, or what comes before them, for what comes after them.
func Finishes(stages []Stage, from, to string) bool {
	_, done := WorkStages(stages)
	index := func(name string) int { return slices.IndexFunc(stages, func(s Stage) bool { return s.Name == name }) }
	return index(from) < done && index(to) >= done && len(stages) > 0
}

// chartStart is the beginning of the first day that charts drawn at now look at.
func chartStart(now time.Time) time.Time {
	return time.Date(now.Year(), now.Month(), now.Day()-ChartDays+1, 0, 0, 0, 0, now.Location())
}

// Charts counts over the last ChartDays days, in now's time zone. stages are the project's.
func (h *StageHistory) Charts(stages []Stage, now time.Time) Charts {
	start := chartStart(now)
	days := make([]DayCount, ChartDays)
	for i := range days {
		days[i].Day = time.Date(start.Year(), start.Month(), start.Day()+i, 0, 0, 0, 0, start.Location()) // days may have 23 hours
	}
	finishes := make([][]bool, len(h.names)) // by from and to
	for from := range h.names {
		finishes[from] = make([]bool, len(h.names))
		for to := range h.names {
			finishes[from][to] = Finishes(stages, h.names[from], h.names[to])
		}
	}
	stays := make([][]int64, len(h.names))
	earlier, before := start.AddDate(0, 0, -ChartDays).UnixMilli(), 0
	for _, m := range h.moves {
		if m.atMS < start.UnixMilli() {
			if m.atMS >= earlier && finishes[m.from][m.to] {
				before++
			}
			continue
		}
		if m.stayedMS >= 0 {
			stays[m.from] = append(stays[m.from], m.stayedMS)
		}
		if finishes[m.from][m.to] {
			after, _ := slices.BinarySearchFunc(days, m.atMS, func(d DayCount, ms int64) int {
				if d.Day.UnixMilli() > ms {
					return 1
				}
				return -1
			})
			days[after-1].Finished++
		}
	}
	from, to := WorkStages(stages)
	c := Charts{Days: days, Before: before}
	for _, stage := range stages[from:to] {
		t := StageTime{Stage: stage.Name}
		if i := slices.Index(h.names, stage.Name); i >= 0 {
			t.Stays, t.Median = len(stays[i]), median(stays[i])
		}
		c.Stages = append(c.Stages, t)
	}
	return c
}

// median sorts values, milliseconds.
func median(values []int64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	middle := values[len(values)/2]
	if len(values)%2 == 0 {
		below := values[len(values)/2-1]
		middle = below + (middle-below)/2
	}
	return time.Duration(middle) * time.Millisecond
}
