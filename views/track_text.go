package views

import (
	"strconv"
	"strings"

	"switchyard/internal/domain"
)

// columns returns the number of cells between a project's name and its days; 1 if there is no heading.
func (t *track) columns() int {
	if t == nil {
		return 1
	}
	n := len(t.stations)
	for _, there := range []bool{t.backlog != nil, t.done != nil, t.cut > 0} {
		if there {
			n++
		}
	}
	return max(1, n)
}

// why says why there is no track.
func (t *track) why() string {
	switch {
	case t.EventsOnly:
		return "This project server has events only."
	case t.Error == domain.NoAnswerYet || t.Error == "":
		return ""
	}
	return Sentence(t.Error)
}

// words says in words what a wagon's colour and position show, to precede its age.
func (w wagon) words() string {
	text := w.state
	text += domain.Cut(or(w.Blocked, w.MergeFailure), 80)
	if text != "" {
		text += "; "
	}
	return text + "in this stage for "
}

// sparkPaths returns the columns of a sparkline of 84 by 22 pixels, for the past days and for today, and the sum. A day
// without any has no column, only its part of the base line, which the style sheet draws.
func sparkPaths(days []domain.DayCount) (past, today string, total int) {
	highest := 2 // one story a day should look like little
	for _, d := range days {
		total += d.Finished
		highest = max(highest, d.Finished)
	}
	var b strings.Builder
	for i, d := range days {
		if d.Finished == 0 {
			continue
		}
		line := "M" + strconv.Itoa(6*i+2) + " 22V" + strconv.Itoa(22-max(2, 20*d.Finished/highest))
		if i == len(days)-1 {
			today = line
		} else {
			b.WriteString(line)
		}
	}
	return b.String(), today, total
}
