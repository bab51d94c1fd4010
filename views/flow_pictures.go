package views

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
)

type flowPoint struct {
	x, y  float64 // percent, pixels
	story *domain.FlowStory
}

func (p flowPoint) label() string {
	name := domain.Cut(cmp.Or(p.story.Name, p.story.StoryID), 32)
	if took := p.story.Finished.Sub(p.story.Started); took < day {
		return name + ", " + age(took)
	}
	return name + ", " + domain.Count(p.story.Days, "day", "days")
}

const (
	// flowPoints is roughly how many points are drawn at most, and flowRows how many stories are in the table: the CSV
	// has all. youngerRows is how many stories in work follow the oldest ones, gradeRows how many of the newest
	// forecasts are in their table.
	flowPoints, flowRows, youngerRows, gradeRows = 215, 40, 25, 40
	cycleHeight                                  = 188
)

// pointStep is how many stories one point stands for.
func (p FlowProps) pointStep() int { return len(p.Report.Stories)/(flowPoints+1) + 1 }

// points returns the points of the stories; the loud ones come last, so that they are on top.
func (p FlowProps) points() (quiet, loud []flowPoint) {
	axis, scale := p.axis(), p.scale()
	for i := 0; i < len(p.Report.Stories); i += p.pointStep() {
		s := &p.Report.Stories[i]
		point := flowPoint{x: axis.at(s.Finished), y: scale.y(s.Days), story: s}
		if at := p.Report.Percentiles; at != nil && s.Days > at[2] {
			loud = append(loud, point)
		} else {
			quiet = append(quiet, point)
		}
	}
	return quiet, loud
}

func (p FlowProps) perDay() float64 {
	return float64(p.finished()) / float64(max(1, len(p.Report.Days)))
}

// flowBand is a stage of work: how many are in it today, and its part of the picture.
type flowBand struct {
	class string
	stage string
	now   int
	path  string
}

// band is the class of a stage of work in all pictures.
func (p FlowProps) band(stage int) string {
	if waits, _, _ := p.waits(); stage == waits {
		return "band-waits"
	}
	return "band-" + strconv.Itoa(stage%4)
}

const (
	// waitsAtLeast is how many stories a stage in which work piles up has at least, and waitsDays how many days ago it
	// had at most half of them.
	waitsAtLeast, waitsDays = 4, 21
)

// waits returns the stage of work that has grown most within three weeks, if it has at least doubled, and how many
// stories it has and had; -1 if there is none.
func (p FlowProps) waits() (stage, now, then int) {
	today := len(p.Report.Days) - 1
	before := today - waitsDays
	if stage = -1; before < 0 {
		return stage, 0, 0
	}
	for i, name := range p.Report.Work {
		has, had := p.Report.Days[today].Work[name], p.Report.Days[before].Work[name]
		if has >= waitsAtLeast && has >= 2*had && has-had > now-then {
			stage, now, then = i, has, had
		}
	}
	return stage, now, then
}

// inWork returns the stages of work, stacked in a picture of that height, and the most stories that were in them.
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
	for i, stage := range p.Report.Work {
		class, above := p.band(i), slices.Clone(below)
		for i, d := range p.Report.Days {
			above[i] += d.Work[stage]
		}
		if !slices.Equal(above, below) {
			now := p.Report.Days[len(above)-1].Work[stage]
			bands = append(bands, flowBand{class, p.Report.Titles[i], now, steps(above, most, high)})
		}
		below = above
	}
	return bands, most
}

// steps is the path of the area below daily numbers, with a unit of one day, in which most has the picture's height.
// Stacked areas are drawn from the top one down, each over the one before: so no edge is encoded twice.
func steps(counts []int, most int, high float64) string {
	return fmt.Sprintf("%sV%.0fH0z", outline(counts, most, high), high)
}

// outline is the upper edge of such an area, encoded as steps from day to day, which compresses well.
func outline(counts []int, most int, high float64) string {
	var path strings.Builder
	at := 0
	for i, n := range counts {
		y := int(math.Round(high - high*float64(n)/float64(most)))
		if i == 0 {
			fmt.Fprintf(&path, "M0 %d", y)
		} else if y != at {
			fmt.Fprintf(&path, "v%d", y-at)
		}
		path.WriteString("h1")
		at = y
	}
	return path.String()
}

// cumulate returns how many stories had come into work, into each later stage of work or further, and to the end, by
// the end of each day of the window. Each story counts once, and one that came before the window counts from its start:
// so no line falls, and none is above the one before it.
func cumulate(r *domain.FlowReport) (lines [][]int) {
	stages := len(r.Work)
	lines = make([][]int, max(1, stages)+1)
	came, went := 0, 0
	for _, d := range r.Days {
		came, went = came+d.Arrived, went+d.Finished
		lines[0] = append(lines[0], came)
		for i := 1; i < stages; i++ {
			lines[i] = append(lines[i], d.Reached[i])
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], went)
	}
	return lines
}

func pixels(value float64) string { return strconv.FormatFloat(value, 'f', 1, 64) }

func stageKey(title string) string { return domain.Cut(title, 24) }

// bars is a path of bars one unit wide, in which most has the picture's height; noBar draws none.
func bars(counts []int, most int, high float64) string {
	var path strings.Builder
	fmt.Fprintf(&path, "M0 %.0f", high)
	for _, n := range counts {
		if n == noBar {
			path.WriteString("h1")
		} else {
			fmt.Fprintf(&path, "V%.0fh.75V%.0fh.25", high-max(1, high*float64(n)/float64(most)), high)
		}
	}
	return path.String() + "z"
}

const noBar = -1

func (p FlowProps) finishedDaily() []int {
	return domain.Map(p.Report.Days, func(d domain.FlowDay) int { return d.Finished })
}

// flowGrades is the picture of the graded forecasts.
type flowGrades struct {
	came, short []int // what was finished, where the promise was kept, and where it was not
	promised    []int
	most        int
}

func newFlowGrades(graded []domain.FlowGrade) flowGrades {
	g := flowGrades{most: 1}
	for _, one := range graded {
		came, short := one.Came, noBar
		if one.Came < one.Promised {
			came, short = noBar, one.Came
		}
		g.came, g.short, g.promised = append(g.came, came), append(g.short, short), append(g.promised, one.Promised)
		g.most = max(g.most, one.Came, one.Promised)
	}
	return g
}

// longLink is how long a story's address may be before a short one replaces it.
const longLink = 100

// flowStoryURL is a story's address, or a short one that leads there if it is long.
func flowStoryURL(project, storyID string, number int64) string {
	if address := StoryURL(project, storyID); len(address) <= longLink || number == 0 {
		return address
	}
	return FlowStoryURL(number)
}

// quietPoints are the points up to 85 %: links for the mouse, in few bytes.
func quietPoints(points []flowPoint) templ.Component {
	var b strings.Builder
	for _, point := range points {
		fmt.Fprintf(&b, `<a href="%s" tabindex="-1"><circle cx="%.1f%%" cy="%.0f"/></a>`,
			FlowStoryURL(point.story.Number), point.x, point.y)
	}
	return templ.Raw(b.String())
}
