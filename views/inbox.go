package views

import "switchyard/internal/domain"

const (
	// shownAlerts is how many alerts are shown at once, foldedAlerts how many below a fold.
	shownAlerts, foldedAlerts = 5, 7
	// acknowledgedAlerts is how many of the acknowledged ones are shown below a fold.
	acknowledgedAlerts = 20
	// maxTags is how many projects the line of stuck stories names.
	maxTags = 12
)

// inbox is what needs attention, as it is shown.
type inbox struct {
	lines        []domain.Alert // those with lines of their own
	more         int            // others that would have one
	stuck        int            // stuck stories: they share a line, unless there is only one
	acknowledged []domain.Alert
}

func newInbox(a domain.Alerts) inbox {
	open := a.Items[:min(a.Open, len(a.Items))]
	b := inbox{acknowledged: a.Items[len(open):]}
	for _, project := range a.OpenStuck {
		b.stuck += project.Count
	}
	own := a.Open
	if b.stuck > 1 {
		own -= b.stuck
	}
	for _, alert := range open {
		if b.stuck < 2 || alert.Kind != domain.AlertStuck {
			b.lines = append(b.lines, alert)
		}
	}
	b.more = own - len(b.lines)
	return b
}

// alertTitle is what an alert is about.
func alertTitle(a domain.Alert) string {
	switch {
	case a.Story != nil:
		return cutEnd(or(a.Story.StoryName, a.Story.StoryID), 80)
	case a.Kind == domain.AlertBot:
		return "Bot configuration"
	case a.Kind == domain.AlertStore:
		return "Database"
	}
	return cutEnd(or(a.Agent, a.Project), 120)
}

// alertWhere says what is wrong and where: "Blocked in webshop · QA".
func alertWhere(a domain.Alert) string {
	word := alertWord(a.Kind)
	switch {
	case a.Story != nil:
		return word + " in " + cutEnd(a.Project, 40) + " · " + domain.StageTitle(a.Stage)
	case a.Agent != "" && a.Project != "":
		return word + ", assigned to " + cutEnd(a.Project, 40)
	}
	return word
}

// or is the first text, or the second one where that is empty.
func or(first, second string) string {
	if first != "" {
		return first
	}
	return second
}
