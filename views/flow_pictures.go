package views

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// flowPoint is a finished story in the picture of cycle times.
type flowPoint struct {
	x, y  float64 // percent, pixels
	story *domain.FlowStory
}

const (
	// flowPoints is the most points that are drawn, flowRows the most stories in the table: the CSV has all.
	flowPoints, flowRows = 2000, 200
	cycleHeight          = 188
)

// longest is the longest cycle time, at least that of the highest line.
func (p FlowProps) longest() int {
	most := 2
	for i := range p.Report.Stories {
		most = max(most, p.Report.Stories[i].Days)
	}
	return most
}

// cycleY is the height of a cycle time in pixels, on a logarithmic scale.
func (p FlowProps) cycleY(days int) float64 {
	return cycleHeight - 12 - (cycleHeight-30)*math.Log(float64(max(1, days)))/math.Log(float64(p.longest()))
}

// dayX is where a day of the window begins, in percent.
func (p FlowProps) dayX(day int) float64 { return 100 * float64(day) / float64(p.Query.Days) }

// points returns the points of the newest stories; the loud ones come last, so that they are on top.
func (p FlowProps) points() (quiet, loud []flowPoint) {
	start := time.Date(p.Now.Year(), p.Now.Month(), p.Now.Day()-p.Query.Days+1, 0, 0, 0, 0, p.Now.Location())
	for i := range p.Report.Stories[:min(len(p.Report.Stories), flowPoints)] {
		s := &p.Report.Stories[i]
		at := s.Finished.Sub(start).Hours() / 24
		point := flowPoint{x: 100 * at / float64(p.Query.Days), y: p.cycleY(s.Days), story: s}
		if at := p.Report.Percentiles; at != nil && s.Days > at[2] {
			loud = append(loud, point)
		} else {
			quiet = append(quiet, point)
		}
	}
	return quiet, loud
}

// highest is the greatest number of stories that were finished on a day, at least 1.
func (p FlowProps) highest() int {
	most := 1
	for _, d := range p.Report.Days {
		most = max(most, d.Finished)
	}
	return most
}

func (p FlowProps) perDay() string {
	return fmt.Sprintf("%.1f", float64(p.finished())/float64(p.Query.Days))
}

// flowBand is a stage of work on a day: its part of a column.
type flowBand struct {
	stage    int
	y, high  float64
	from, to int // days
}

// inWork returns the names of the stages of work, and bands of equal days in pixels of a height.
func (p FlowProps) inWork(high float64) (stages []string, bands []flowBand, most int) {
	stages = p.workStages()
	total := func(d domain.FlowDay) (n int) {
		for _, s := range stages {
			n += d.Stages[s]
		}
		return n
	}
	most = 1
	for _, d := range p.Report.Days {
		most = max(most, total(d))
	}
	open := make([]int, len(stages)) // indexes into bands, plus 1
	for day, d := range p.Report.Days {
		y := high
		for i, s := range stages {
			h := high * float64(d.Stages[s]) / float64(most)
			y -= h
			if at := open[i]; at > 0 && bands[at-1].high == h && bands[at-1].y == y && bands[at-1].to == day {
				bands[at-1].to = day + 1
			} else if open[i] = 0; h > 0 {
				bands = append(bands, flowBand{i, y, h, day, day + 1})
				open[i] = len(bands)
			}
		}
	}
	return stages, bands, most
}

// workStages are the stages between waiting and done, at most maxStations, of the boards that the report is about.
func (p FlowProps) workStages() []string {
	var names []string
	for _, age := range p.Report.Stages {
		stages := []domain.Stage{{Name: "0_first"}, {Name: age}}
		if i := slices.Index(p.Report.Stages, age); i > 0 && domain.OpenStages(stages) == 2 {
			names = append(names, age)
		}
	}
	return names[:min(len(names), maxStations)]
}

// cumulated returns how many stories had come into work, and how many had been finished, by the end of each day of the
// window. What came in before the window is not counted, nor is what of that is finished: no line falls.
func (p FlowProps) cumulated() (arrived, finished []int) {
	a, f := 0, 0
	for _, d := range p.Report.Days {
		a, f = a+d.Arrived, f+d.Finished
		arrived, finished = append(arrived, max(a, f)), append(finished, f)
	}
	return arrived, finished
}

// weeks are the days of the window on whose beginnings lines are drawn, with their dates.
func (p FlowProps) weeks() (list []flowWeek) {
	step := 7
	if p.Query.Days > 60 {
		step = 14
	}
	if p.Query.Days > 120 {
		step = 28
	}
	for day := p.Query.Days - 1; day >= 0; day -= step {
		at := p.Now.AddDate(0, 0, day-p.Query.Days+1)
		list = append(list, flowWeek{p.dayX(day), at.Format("2 Jan")})
	}
	slices.Reverse(list)
	return list
}

type flowWeek struct {
	x    float64
	date string
}

// unknownDays is how many days of the window are before the first known move.
func (p FlowProps) unknownDays() int {
	if p.Report.Since.IsZero() {
		return p.Query.Days
	}
	first := p.Report.Since.Format(time.DateOnly)
	for i, d := range p.Report.Days {
		if d.Day >= first {
			return i
		}
	}
	return p.Query.Days
}

func pixels(value float64) string { return strconv.FormatFloat(value, 'f', 1, 64) }

// shortStage is a stage's name in a legend.
func shortStage(name string) string {
	return domain.Cut(strings.TrimSpace(domain.StageTitle(name)), 24)
}
