package views

import (
	"cmp"

	"switchyard/internal/domain"
)

const (
	// ShownAlerts is the most alerts shown at once, foldedAlerts the most in the fold below.
	ShownAlerts, foldedAlerts = 5, 7
	// acknowledgedAlerts is the most acknowledged alerts shown in a fold.
	acknowledgedAlerts = 20
	// maxTags is the most projects that the line of stuck stories names.
	maxTags = 12
)

// inbox holds the alerts in the form in which they are shown.
type inbox struct {
	lines        []domain.Alert // alerts with their own lines
	more         int            // how many others there are
	stuck        int            // stuck stories, which share a line unless there is only one
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

// line is what a question's line says of it, by whom and where.
func (q QuestionProps) line() (title, where string) {
	title = visible(domain.Cut(q.By, 60)) + " " + q.asks()
	where = visible(domain.Cut(q.Project, 40))
	if q.StoryID != "" {
		where = visible(q.story()) + " · " + where
	}
	return title, where
}

// link is what a question's link leads to.
func (q QuestionProps) link() string {
	switch {
	case q.Refusal != "" || q.inSight():
		return "Open"
	case q.Kind == domain.QuestionChoice && q.Choices() == nil:
		return domain.Count(len(q.Options), "option", "options")
	}
	return "Read and answer"
}

// acknowledges is what the button says that acknowledges an alert.
func acknowledges(a domain.Alert) string {
	if a.Stops {
		return "Let it go on"
	}
	return "Acknowledge"
}

func alertTitle(a domain.Alert) string {
	switch {
	case a.Kind == domain.AlertQuestion:
		return visible(domain.Cut(a.Reason, 120))
	case a.Story != nil:
		return domain.Cut(cmp.Or(a.Story.StoryName, a.Story.StoryID), 80)
	case a.Kind == domain.AlertBot:
		return "Bot configuration"
	case a.Kind == domain.AlertStore:
		return "Database"
	}
	return domain.Cut(cmp.Or(a.Agent, a.Project), 120)
}

// alertWhy says why something needs attention, "" if its title does or if there is nothing to say.
func alertWhy(a domain.Alert) string {
	switch {
	case a.Kind == domain.AlertQuestion:
		return ""
	case a.Kind == domain.AlertUnreachable && a.Reason != "":
		return WhyAway(a.Reason)
	}
	return a.Reason
}

// alertWhere says what is wrong and where: "Blocked in webshop · QA".
func alertWhere(a domain.Alert) string {
	word := upper(a.Kind.Word())
	switch {
	case a.Kind == domain.AlertQuestion && a.Story != nil:
		return visible(domain.Cut(a.Agent, 60)) + " asks · " + domain.Cut(a.Project, 40) + " · " +
			visible(domain.Cut(cmp.Or(a.Story.StoryName, a.Story.StoryID), 60))
	case a.Kind == domain.AlertQuestion:
		return visible(domain.Cut(a.Agent, 60)) + " asks"
	case a.Story != nil:
		return word + " in " + domain.Cut(a.Project, 40) + " · " + a.StageTitle
	case a.Kind == domain.AlertBudget:
		return word + " today"
	case a.Agent != "" && a.Project != "":
		return word + ", assigned to " + domain.Cut(a.Project, 40)
	}
	return word
}
