package views

import "switchyard/internal/domain"

// overdueText says what has been wrong with the story for too long, "" for an alert of another kind.
func overdueText(a domain.Alert) (what, why string) {
	switch a.Kind {
	case domain.AlertConflicts:
		return "Conflicts with " + domain.Cut(a.Base, 60), a.Reason
	case domain.AlertUnmerged:
		return "Done, but not on " + domain.Cut(a.Base, 60), a.Reason
	case domain.AlertStuck:
		return "Stuck", "for longer than is usual there"
	}
	return "", ""
}

// acknowledges is the label of the button that acknowledges one of the story's alerts.
func (p StoryProps) acknowledges(a domain.Alert) string {
	if len(p.Alerts) == 1 {
		return "Acknowledge"
	}
	return "Acknowledge: " + a.Kind.Word()
}
