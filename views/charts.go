package views

import (
	"fmt"
	"strconv"
	"time"

	"switchyard/internal/domain"
)

const dayFormat = "Mon 2 Jan"

// dayChart is a chart with a column for each day, in pixels of the page's SVG.
type dayChart struct {
	bars                   []dayBar
	total                  int
	width, height, viewBox string
	column, bar            string // widths
	first                  string // the first day
	average                string // height of the average's line
	perDay                 string
	summary                string // for readers who cannot see the chart
}

type dayBar struct {
	left, x   string // of the column, of its bar
	y, height string // of the bar
	words     string
}

// Dimensions of a chart of days, whose width the page stretches.
const (
	columnWidth = 20
	barWidth    = 14
	barsTop     = 2
	barsHeight  = 70
)

func newDayChart(days []domain.DayCount) dayChart {
	highest, best := 0, 0
	c := dayChart{total: finished(days), column: strconv.Itoa(columnWidth), bar: strconv.Itoa(barWidth)}
	for i, d := range days {
		if d.Finished > highest {
			highest, best = d.Finished, i
		}
	}
	if c.total == 0 {
		return c
	}
	scale := max(highest, 3) // one story a day should look like little
	width, base := len(days)*columnWidth, barsTop+barsHeight
	c.width, c.height = strconv.Itoa(width), strconv.Itoa(base)
	c.viewBox = "0 0 " + c.width + " " + c.height
	average := perDay(days[:max(1, len(days)-1)]) // without today, which is not over
	if average >= 0.05 {
		c.perDay = fmt.Sprintf("%.1f on average", average) // less would be shown as 0.0
	}
	if average >= 100 {
		c.perDay = fmt.Sprintf("%.0f on average", average)
	}
	c.average = strconv.Itoa(base - int(average*barsHeight/float64(scale)))
	c.first = days[0].Day.Format("2 Jan")
	c.summary = fmt.Sprintf("%s finished in %d days, most of them, %d, on %s",
		count(c.total, "story", "stories"), len(days), highest, days[best].Day.Format(dayFormat))
	for i, d := range days {
		left := i * columnWidth
		height := 0
		if d.Finished > 0 {
			height = max(2, d.Finished*barsHeight/scale)
		}
		b := dayBar{
			left: strconv.Itoa(left), x: strconv.Itoa(left + (columnWidth-barWidth)/2),
			y: strconv.Itoa(base - height), height: strconv.Itoa(height),
			words: d.Day.Format(dayFormat) + ": " + strconv.Itoa(d.Finished),
		}
		c.bars = append(c.bars, b)
	}
	return c
}

func longestVisit(stages []domain.StageTime) time.Duration {
	var longest time.Duration
	for _, s := range stages {
		longest = max(longest, s.Median)
	}
	return longest
}

// share returns a part of the whole as the width of a bar.
func share(part, whole time.Duration) string {
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

// duration returns a duration in words, as precise as is useful: "42 s", "14 min", "3.4 h", "12 d".
func duration(d time.Duration) string {
	unit, name := time.Hour, "h"
	switch {
	case d < time.Hour:
		return age(d)
	case d >= 24*time.Hour:
		unit, name = 24*time.Hour, "d"
	}
	n := float64(d) / float64(unit)
	if n >= 10 {
		return fmt.Sprintf("%.0f %s", n, name)
	}
	return fmt.Sprintf("%.1f %s", n, name)
}

// fact is a number with its name, and text beside it that puts it into perspective.
type fact struct{ name, value, beside string }

// facts are those of all projects or of one.
func facts(working int, charts domain.Charts, agents []domain.Agent) []fact {
	running := 0
	for _, a := range agents {
		if a.State == domain.AgentRunning {
			running++
		}
	}
	list := []fact{{name: "In work", value: strconv.Itoa(working)}}
	if n := len(charts.Days); n > 1 {
		today := fact{name: "Finished today", value: strconv.Itoa(charts.Days[n-1].Finished)}
		if usual := perDay(charts.Days[:n-1]); usual >= 0.5 {
			today.beside = fmt.Sprintf("usually %.0f", usual)
		}
		list = append(list, today)
	}
	list = append(list, fact{"Agents running", strconv.Itoa(running), "of " + strconv.Itoa(len(agents))})
	if charts.ToDone.Visits > 0 {
		list = append(list, fact{name: "Median to done", value: duration(charts.ToDone.Median)})
	}
	return list
}

func finished(days []domain.DayCount) (stories int) {
	for _, d := range days {
		stories += d.Finished
	}
	return stories
}

func perDay(days []domain.DayCount) float64 {
	return float64(finished(days)) / float64(max(1, len(days)))
}

// compared says how many more or fewer were finished than in as many days before, and returns the class of the text.
func compared(days []domain.DayCount, before int) (words, class string) {
	sum := finished(days)
	if before < len(days)/2 { // too few for a percentage
		return fmt.Sprintf("%d in the %d days before", before, len(days)), "text-muted"
	}
	change := 100 * (sum - before) / before
	switch {
	case change > 0:
		return fmt.Sprintf("+ %d %% on the %d before", change, len(days)), "text-clear"
	case change < 0:
		return fmt.Sprintf("− %d %% on the %d before", -change, len(days)), "text-muted"
	}
	return fmt.Sprintf("± 0 %% on the %d before", len(days)), "text-muted"
}
