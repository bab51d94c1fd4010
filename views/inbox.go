package views

import (
	"cmp"
	"slices"

	"switchyard/internal/domain"
)

const (
	// ShownAlerts is the most alerts shown at once, foldedAlerts the most in the fold below.
	ShownAlerts, foldedAlerts = 5, 7
	// acknowledgedAlerts is the most acknowledged alerts shown in a fold.
	acknowledgedAlerts = 20
	maxTags            = 12
)

// InlineActions is what can be done about alerts in their own lines.
type InlineActions struct {
	Asked  map[int64]QuestionProps // questions, in full
	Failed map[string]domain.Story // by the alerts' keys: stories whose failed merge can be retried
}

type inbox struct {
	groups       []alertGroup   // empty if all rows fit
	lines        []domain.Alert // alerts of the chosen group with their own lines
	more         int            // how many others there are
	stuck        int            // stuck stories, which share a line unless there is only one
	acknowledged []domain.Alert
}

// alertGroup gathers the alerts of some kinds if there are too many for a list.
type alertGroup struct {
	id, word string
	todo     string // what they ask for
	signal   Signal
	kinds    []domain.AlertKind // none: those that are in no other group
	count    int
	oldest   *domain.Alert // of those at hand
	pulled   bool
}

var alertGroups = []alertGroup{
	{
		id: "questions", word: "Questions", todo: "To answer", signal: SignalAsks,
		kinds: []domain.AlertKind{domain.AlertQuestion, domain.AlertWaiting},
	},
	{
		id: "blocked", word: "Blocked", todo: "To unblock", signal: SignalStop,
		kinds: []domain.AlertKind{domain.AlertBlocked},
	},
	{
		id: "merges", word: "Merges failed", todo: "To merge", signal: SignalCaution,
		kinds: []domain.AlertKind{domain.AlertMerge, domain.AlertConflicts, domain.AlertUnmerged},
	},
	{id: "working", word: "Not working", todo: "To mend", signal: SignalStop},
	{
		id: "budget", word: "Over budget", todo: "To decide", signal: SignalCaution,
		kinds: []domain.AlertKind{domain.AlertBudget},
	},
	{
		id: groupStuck, word: "Stuck", todo: "To look at", signal: SignalCaution,
		kinds: []domain.AlertKind{domain.AlertStuck},
	},
}

const groupStuck = "stuck"

// NeedsOf returns the group of alerts that an address names, "" for none.
func NeedsOf(asked string) string {
	if slices.ContainsFunc(alertGroups, func(l alertGroup) bool { return l.id == asked }) {
		return asked
	}
	return ""
}

func groupOf(kind domain.AlertKind) int {
	i := slices.IndexFunc(alertGroups, func(l alertGroup) bool { return slices.Contains(l.kinds, kind) })
	if i < 0 {
		i = slices.IndexFunc(alertGroups, func(l alertGroup) bool { return l.kinds == nil })
	}
	return i
}

// newInbox groups the alerts by kind if there are many; pulled is the group whose rows are shown.
func newInbox(a domain.Alerts, pulled string) inbox {
	open := a.Items[:min(a.Open, len(a.Items))]
	b := inbox{acknowledged: a.Items[len(open):], stuck: a.ByKind[domain.AlertStuck]}
	all := slices.Clone(alertGroups)
	for kind, n := range a.ByKind {
		all[groupOf(kind)].count += n
	}
	for i := range open {
		if l := &all[groupOf(open[i].Kind)]; !open[i].Asked && (l.oldest == nil || open[i].Since.Before(l.oldest.Since)) {
			l.oldest = &open[i]
		}
	}
	all = slices.DeleteFunc(all, func(l alertGroup) bool { return l.count == 0 })
	rows := a.Rows
	if b.stuck > 1 {
		rows -= b.stuck
	}
	if rows > ShownAlerts && len(all) > 1 {
		at := max(0, slices.IndexFunc(all, func(l alertGroup) bool { return l.id == pulled }))
		all[at].pulled, b.groups = true, all
		if rows = all[at].count; all[at].id != groupStuck {
			b.stuck = 0
		} else if b.stuck > 1 {
			rows = 0
		}
	}
	for _, alert := range open {
		switch {
		case alert.Asked, b.stuck > 1 && alert.Kind == domain.AlertStuck:
		case b.groups == nil, all[groupIndex(all, alert.Kind)].pulled:
			b.lines = append(b.lines, alert)
		}
	}
	b.more = rows - len(b.lines)
	return b
}

func groupIndex(list []alertGroup, kind domain.AlertKind) int {
	return slices.IndexFunc(list, func(l alertGroup) bool { return l.id == alertGroups[groupOf(kind)].id })
}

// needsURL is the address of the overview with a group of alerts open.
func (p OverviewProps) needsURL(l alertGroup) string {
	p.Needs = l.id
	return p.address(p.Page)
}

// line returns what a question's line says: what it is about, from whom and where.
func (q QuestionProps) line(a domain.Alert) (title, where string) {
	asks, project := visible(domain.Cut(q.By, 60))+" "+q.asks(), visible(domain.Cut(q.Project, 40))
	if a.Story != nil {
		return alertTitle(a), asks + " · " + project
	}
	return asks, project
}

func (q QuestionProps) link() string {
	if q.Refusal != "" || q.fitsRow() {
		return "Open"
	}
	_, link := q.form()
	return link
}

// acknowledges is the label of the button that acknowledges an alert.
func acknowledges(a domain.Alert) string {
	if a.Stops {
		return "Let it go on"
	}
	return "Acknowledge"
}

func alertTitle(a domain.Alert) string {
	switch {
	case a.Story != nil:
		return domain.Cut(cmp.Or(a.Story.StoryName, a.Story.StoryID), 80)
	case a.Kind == domain.AlertBot:
		return "Bot configuration"
	case a.Kind == domain.AlertStore:
		return "Database"
	}
	return visible(domain.Cut(cmp.Or(a.Agent, a.Project), 120))
}

// alertSignal returns what an alert looks like.
func alertSignal(a domain.Alert) Signal {
	if a.Kind == domain.AlertQuestion || a.Kind == domain.AlertWaiting {
		return SignalAsks
	}
	return signal(a.Kind.Signal())
}

// alertWhy says why something needs attention, "" if its title does or there is nothing to say.
func alertWhy(a domain.Alert) string {
	switch {
	case a.Kind == domain.AlertQuestion:
		return visible(domain.Cut(a.Reason, 400))
	case a.Kind == domain.AlertUnreachable && a.Reason != "":
		return WhyAway(a.Reason)
	case a.Kind == domain.AlertStuck:
		return "in this stage usually up to " + age(a.Since.Sub(a.Story.Since))
	}
	return a.Reason
}

// alertWhere says what is wrong and where: "Blocked in webshop · QA".
func alertWhere(a domain.Alert) string {
	word, asks := upper(a.Kind.Word()), alertSignal(a) == SignalAsks
	switch {
	case asks && a.Story != nil:
		return visible(domain.Cut(a.Agent, 60)) + " " + a.Kind.Word() + " · " + domain.Cut(a.Project, 40)
	case a.Story != nil:
		return word + " in " + domain.Cut(a.Project, 40) + " · " + a.StageTitle
	case a.Kind == domain.AlertBudget:
		return word + " today"
	case asks && a.Project != "":
		return word + " · " + domain.Cut(a.Project, 40)
	case a.Agent != "" && a.Project != "":
		return word + ", assigned to " + domain.Cut(a.Project, 40)
	}
	return word
}
