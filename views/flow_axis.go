package views

import (
	"fmt"
	"math"
	"slices"
	"time"

	"switchyard/internal/domain"
)

// flowAxis is the axis of the known days that all pictures share.
type flowAxis struct {
	days int
	now  time.Time
}

func (p FlowProps) axis() flowAxis { return flowAxis{len(p.Report.Days), p.Now} }

// short reports whether the pictures are small, and arranged in pairs.
func (a flowAxis) short() bool { return a.days <= 31 }

// x is where a day begins, in percent.
func (a flowAxis) x(day int) float64 { return 100 * float64(day) / float64(a.days) }

func (a flowAxis) begin() time.Time {
	return time.Date(a.now.Year(), a.now.Month(), a.now.Day()-a.days+1, 0, 0, 0, 0, a.now.Location())
}

// at is the position of a time, in percent.
func (a flowAxis) at(t time.Time) float64 {
	return max(0, min(100, 100*t.Sub(a.begin()).Hours()/24/float64(a.days)))
}

// weeks are the days at whose beginning a line is drawn, with their dates.
func (a flowAxis) weeks() (list []flowWeek) {
	step := min(7, max(1, a.days/3))
	if a.days > 60 {
		step = 14
	}
	if a.days > 120 {
		step = 28
	}
	for day := a.days - 1; day >= 0; day -= step {
		list = append(list, flowWeek{a.x(day), a.begin().AddDate(0, 0, day).Format("2 Jan")})
	}
	slices.Reverse(list)
	return list
}

type flowWeek struct {
	x    float64
	date string
}

// high is the height of a picture in pixels, which in a pair is that of the one beside it.
func (a flowAxis) high(alone, beside int) int {
	if a.short() {
		return beside
	}
	return alone
}

// view is the viewBox of a picture with a unit of one day.
func (a flowAxis) view(high int) string { return fmt.Sprintf("0 0 %d %d", a.days, high) }

// flowTick is a number beside a picture, and its height in pixels.
type flowTick struct {
	text string
	y    float64
}

// countTicks are zero and the largest round number that fits a picture of counts.
func countTicks(most int, high float64) []flowTick {
	ticks := []flowTick{{"0", high}}
	if round := roundNumbers(most); len(round) > 0 {
		n := round[len(round)-1]
		ticks = append(ticks, flowTick{thousands(n), high - high*float64(n)/float64(most)})
	}
	return ticks
}

// roundNumbers are 1, 2, 5, 10, 20, 50 and so on up to a number.
func roundNumbers(most int) (list []int) {
	for unit := 1; unit <= most; unit *= 10 {
		for _, step := range []int{1, 2, 5} {
			if step*unit <= most {
				list = append(list, step*unit)
			}
		}
	}
	return list
}

// cycleScale is a logarithmic scale of cycle times up to the longest.
type cycleScale int

func (p FlowProps) scale() cycleScale {
	most := 2
	for i := range p.Report.Stories {
		most = max(most, p.Report.Stories[i].Days)
	}
	return cycleScale(most)
}

// y is the height of a cycle time in pixels.
func (c cycleScale) y(days int) float64 {
	return cycleHeight - 12 - (cycleHeight-30)*math.Log(float64(max(1, days)))/math.Log(float64(c))
}

// labels are the heights of the lines' names: as high as the lines, but not overlapping.
func (c cycleScale) labels(at *[4]int) (y [4]float64) {
	const line = 13
	for i, n := range at {
		y[i] = c.y(n)
	}
	y[0], y[3] = max(y[0], y[2]+line), min(y[3], y[2]-line)
	return y
}

func (c cycleScale) ticks() []flowTick {
	return domain.Map(roundNumbers(int(c)), func(n int) flowTick { return flowTick{days(n), c.y(n)} })
}
