package views

import (
	"fmt"
	"strings"
	"time"

	"switchyard/internal/domain"
)

const dayFormat = "Mon 2 Jan"

// The sizes in a chart of days, in pixels of its SVG, whose width the page stretches: a day's column and the bar in it,
// the highest bar, and the whole.
const columnWidth, barWidth, barsHeight, chartHeight = 20, 14, 70, 72

type dayChart struct {
	days    []domain.DayCount
	total   int
	highest domain.DayCount
	average float64 // without today, which is not over
}

func newDayChart(days []domain.DayCount) dayChart {
	c := dayChart{days: days, total: finished(days), average: perDay(days[:max(0, len(days)-1)])}
	for _, d := range days {
		if d.Finished > c.highest.Finished {
			c.highest = d
		}
	}
	return c
}

func (c dayChart) y(stories float64) int {
	return chartHeight - int(stories*barsHeight/float64(max(3, c.highest.Finished)))
}

func (c dayChart) perDay() string {
	switch {
	case c.average < 0.05:
		return "" // it would be shown as 0.0
	case c.average >= 100:
		return fmt.Sprintf("%.0f on average", c.average)
	}
	return fmt.Sprintf("%.1f on average", c.average)
}

// pastText says since when a project's past is known, "" if git knows nothing about it.
func pastText(past domain.Past, days []domain.DayCount) string {
	if past.Since.IsZero() || len(days) == 0 {
		return ""
	}
	today := days[len(days)-1].Day
	text := "since " + dateText(past.Since, today) + ", from git"
	if past.Live.After(days[0].Day) {
		text += "; seen live since " + dateText(past.Live, today)
	}
	return text
}

// beginning returns the part of a text about a past without since when it was seen live.
func beginning(past string) string {
	past, _, _ = strings.Cut(past, ";")
	return past
}

// past says since when the project's past is known, or how far git was read; "" if git knows nothing about it.
func (p ProjectProps) past() string {
	if at := p.Pipeline.Board.Past; at.Of > 0 && p.Charts.Past.ID == "" {
		return thousands(max(0, min(at.Read, at.Of))) + " of " + thousands(at.Of) + " commits read from git"
	}
	if p.Pipeline.Board.Branch != "" && p.Charts.Past.ID == "" {
		return "not read from git yet"
	}
	return pastText(p.Charts.Past, p.Charts.Days)
}

func (c dayChart) summary() string {
	return fmt.Sprintf("%s finished in %d days, most of them, %s, on %s", domain.Count(c.total, "story", "stories"),
		len(c.days), thousands(c.highest.Finished), c.highest.Day.Format(dayFormat))
}

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

// usually says how long stories usually stay in a stage, "" if unknown.
func usually(stages []domain.StageTime, stage string) string {
	for _, u := range stages {
		if u.Stage == stage && u.Visits > 0 {
			return "usually " + duration(u.Median)
		}
	}
	return ""
}

// fact is a number with its name, and text beside it that puts it into perspective; tone is the class of its value
// unless that is 0.
type fact struct{ name, value, beside, tone string }

func facts(working int, charts domain.Charts, agents []domain.Agent) []fact {
	running := howMany(agents, func(a domain.Agent) bool { return a.State == domain.AgentRunning })
	list := []fact{{name: "In work", value: thousands(working)}}
	if n := len(charts.Days); n > 1 {
		today := fact{name: "Finished today", value: thousands(charts.Days[n-1].Finished)}
		if usual := perDay(charts.Days[:n-1]); usual >= 0.5 {
			today.beside = fmt.Sprintf("usually %.0f", usual)
		}
		list = append(list, today)
	}
	list = append(list, fact{
		name: "Agents running", value: thousands(running), beside: "of " + thousands(len(agents)),
	})
	if charts.ToDone.Visits > 0 {
		past := beginning(pastText(charts.Past, charts.Days))
		list = append(list, fact{name: "Median to done", value: duration(charts.ToDone.Median), beside: past})
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

// compareWithBefore says how many more or fewer were finished than in as many days before, and returns the class of the
// text. Without any before it says nothing: those days may precede the first known one.
func compareWithBefore(days []domain.DayCount, before int) (words, class string) {
	sum := finished(days)
	if before == 0 {
		return "", ""
	}
	if before < len(days)/2 { // too few for a percentage
		return fmt.Sprintf("%s in the %d days before", thousands(before), len(days)), "text-muted"
	}
	change := 100 * (sum - before) / before
	switch {
	case change > 0:
		return fmt.Sprintf("+ %s %% on the %d before", thousands(change), len(days)), "text-clear"
	case change < 0:
		return fmt.Sprintf("− %d %% on the %d before", -change, len(days)), "text-muted"
	}
	return fmt.Sprintf("± 0 %% on the %d before", len(days)), "text-muted"
}
