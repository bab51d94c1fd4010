package views

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
)

// flowPoint is a finished story in the picture of cycle times.
type flowPoint struct {
	x, y  float64 // percent, pixels
	story *domain.FlowStory
}

func (p flowPoint) label() string {
	name := domain.Cut(cmp.Or(p.story.StoryName, p.story.StoryID), 32)
	return name + ", " + domain.Count(p.story.Days, "day", "days")
}

const (
	// flowPoints is the most points that are drawn, flowRows the most stories in the table: the CSV has all. youngerRows
	// is how many stories in work follow the oldest ones.
	flowPoints, flowRows, youngerRows = 2000, 200, 50
	cycleHeight                       = 188
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
		point := flowPoint{x: min(100, 100*at/float64(p.Query.Days)), y: p.cycleY(s.Days), story: s}
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

// flowBand is a stage of work: how many are in it today, and its part of the picture.
type flowBand struct {
	stage string
	now   int
	path  string
}

// inWork returns the stages of work, stacked in a picture of a height, and how many stories were in them at most.
func (p FlowProps) inWork(high float64) (bands []flowBand, most int) {
	below := make([]int, len(p.Report.Days))
	most = 1
	for _, d := range p.Report.Days {
		total := 0
		for _, n := range d.Work {
			total += n
		}
		most = max(most, total)
	}
	for _, stage := range p.Report.Work {
		above := slices.Clone(below)
		for i, d := range p.Report.Days {
			above[i] += d.Work[stage]
		}
		if !slices.Equal(above, below) {
			now := p.Report.Days[len(above)-1].Work[stage]
			bands = append(bands, flowBand{stage, now, steps(above, below, most, high)})
		}
		below = above
	}
	return bands, most
}

// steps is the path of an area between two numbers of each day, whose unit is a day wide, where most is as high as the
// picture.
func steps(above, below []int, most int, high float64) string {
	var path strings.Builder
	y := func(n int) string {
		return strings.TrimSuffix(strconv.FormatFloat(high-high*float64(n)/float64(most), 'f', 1, 64), ".0")
	}
	for i, n := range above {
		if i == 0 {
			fmt.Fprintf(&path, "M0 %s", y(n))
		} else if n != above[i-1] {
			fmt.Fprintf(&path, "H%dV%s", i, y(n))
		}
	}
	fmt.Fprintf(&path, "H%d", len(above))
	for i, n := range slices.Backward(below) {
		if i == len(below)-1 || n != below[i+1] {
			fmt.Fprintf(&path, "H%dV%s", i+1, y(n))
		}
	}
	return path.String() + "H0z"
}

// cumulated returns how many stories had come into work, and how many had been finished, by the end of each day of the
// window. Each story counts once, and one that came before the window from its beginning: so no line falls, and what is
// finished never exceeds what came.
func (p FlowProps) cumulated() (arrived, finished []int) {
	came, went := 0, 0
	for _, d := range p.Report.Days {
		came, went = came+d.Arrived, went+d.Finished
		arrived, finished = append(arrived, came), append(finished, went)
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

// stageKey is a stage's name in a legend.
func stageKey(name string) string { return domain.Cut(domain.StageTitle(name), 24) }

// bars is the path of what was finished on each day, whose unit is a day wide.
func (p FlowProps) bars(high float64) string {
	var path strings.Builder
	for i, d := range p.Report.Days {
		if d.Finished > 0 {
			tall := high * float64(d.Finished) / float64(p.highest())
			fmt.Fprintf(&path, "M%d %sh.75v%sh-.75z", i, pixels(high-tall), pixels(tall))
		}
	}
	return path.String()
}

// viewDays is the viewBox of a picture whose unit is a day wide.
func (p FlowProps) viewDays(high int) string { return fmt.Sprintf("0 0 %d %d", p.Query.Days, high) }

// longLink is how long the address of a story may be before a short one leads there.
const longLink = 100

// flowStoryURL is the address of a story, or where that is long, one that leads there.
func flowStoryURL(project, storyID string, number int64) string {
	if address := StoryURL(project, storyID); len(address) <= longLink || number == 0 {
		return address
	}
	return FlowStoryURL(number)
}

// quietPoints are the points up to 85 %: links for the mouse, in few bytes.
func quietPoints(points []flowPoint) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b bytes.Buffer
		for _, point := range points {
			fmt.Fprintf(&b, `<a href="%s" tabindex="-1"><circle cx="%.1f%%" cy="%.0f"/></a>`,
				FlowStoryURL(point.story.Number), point.x, point.y)
		}
		_, err := w.Write(b.Bytes())
		return err
	})
}
