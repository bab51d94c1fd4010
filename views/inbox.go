package views

import "switchyard/internal/domain"

const (
	// shownAlerts is how many alerts are shown at once, foldedAlerts how many below a fold.
	shownAlerts, foldedAlerts = 8, 12
	// maxTags is how many projects the line of stuck stories names.
	maxTags = 12
)

// inboxOf returns the alerts that have lines of their own. Stuck stories share one, unless there is only one.
func inboxOf(a domain.Alerts, stuck int) []domain.Alert {
	open := a.Items[:min(a.Open, len(a.Items))]
	if stuck < 2 {
		return open
	}
	var lines []domain.Alert
	for _, alert := range open {
		if alert.Kind != domain.AlertStuck {
			lines = append(lines, alert)
		}
	}
	return lines
}

// alertTitle is what an alert is about.
func alertTitle(a domain.Alert) string {
	switch {
	case a.Story != nil:
		return cutEnd(or(a.Story.StoryName, a.Story.StoryID), 120)
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
		return word + " in " + cutEnd(a.Project, 80) + " · " + domain.StageTitle(a.Stage)
	case a.Agent != "" && a.Project != "":
		return word + ", assigned to " + cutEnd(a.Project, 80)
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
