package views

import (
	"fmt"
	"strconv"

	"switchyard/internal/domain"
)

// fact is a number with its name, and text beside it that puts it into perspective.
type fact struct{ name, value, beside string }

func newNumbers(p OverviewProps, g grid) []fact {
	running := 0
	for _, a := range p.Agents {
		if a.State == domain.AgentRunning {
			running++
		}
	}
	return factsOf(g.working, p.Together, running, len(p.Agents))
}

// projectNumbers are the same numbers of one project.
func projectNumbers(p ProjectProps) []fact {
	running := 0
	for _, a := range p.Agents {
		if a.State == domain.AgentRunning {
			running++
		}
	}
	return factsOf(inWork(p.Pipeline), p.Charts, running, len(p.Agents))
}

// factsOf puts numbers side by side.
func factsOf(working int, charts domain.Charts, running, agents int) []fact {
	list := []fact{{name: "In work", value: strconv.Itoa(working)}}
	if n := len(charts.Days); n > 1 {
		today := fact{name: "Finished today", value: strconv.Itoa(charts.Days[n-1].Finished)}
		if usual := perDay(charts.Days[:n-1]); usual >= 0.5 {
			today.beside = fmt.Sprintf("usually %.0f", usual)
		}
		list = append(list, today)
	}
	list = append(list, fact{"Agents running", strconv.Itoa(running), "of " + strconv.Itoa(agents)})
	if charts.ToDone.Visits > 0 {
		list = append(list, fact{name: "Median to done", value: duration(charts.ToDone.Median)})
	}
	return list
}

func perDay(days []domain.DayCount) float64 {
	sum := 0
	for _, d := range days {
		sum += d.Finished
	}
	return float64(sum) / float64(max(1, len(days)))
}

// compared says how many more or fewer were finished than in as many days before, and returns the class of the text.
func compared(days []domain.DayCount, before int) (words, class string) {
	sum := 0
	for _, d := range days {
		sum += d.Finished
	}
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
