package views

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// Addresses of the forms that belong to a target.
func TargetURL(id string) string { return NotificationsURL + "/" + url.PathEscape(id) }

// DigestURL returns the address of a digest's page.
func DigestURL(id string) string { return NotificationsURL + "/digests/" + url.PathEscape(id) }

// NotificationsProps are the data of the Notifications page.
type NotificationsProps struct {
	Targets  []TargetRow
	Log      string // the id of the target whose whole log is shown
	Form     *TargetForm
	Given    GivenToken // a webhook's secret, shown once
	Projects []string   // to choose from
	Now      time.Time
}

// TargetRow is a target with what happened to its messages.
type TargetRow struct {
	domain.Target
	Shown      string // its address without secrets
	Hours      []domain.DeliveryHour
	Waiting    int // messages waiting while it fails
	WaitsMore  bool
	Deliveries []domain.Delivery // those listed, newest first
	Recent     []domain.Delivery // all that are kept, newest first
	LastDigest *domain.DigestRecord
	Zone       *time.Location // its rules'
}

func (p NotificationsProps) address() string { return withQuery(NotificationsURL, "log", p.Log) }

func (p NotificationsProps) facts() []fact {
	sent, waiting, at, held := 0, 0, 0, 0
	var took []int64 // for the last message of each
	for _, t := range p.Targets {
		for _, h := range t.Hours {
			if !h.Hour.Before(domain.StartOfDay(p.Now.In(t.Zone))) {
				sent += h.Sent
			}
		}
		if !t.Progress.HeldAt.IsZero() {
			held++
		}
		if !t.Progress.SentAt.IsZero() {
			took = append(took, t.Progress.SentMS)
		}
		if waiting += t.Waiting; t.Waiting > 0 {
			at++
		}
	}
	list := []fact{
		{name: "Delivered today", value: thousands(sent)},
		{name: "Waiting", value: thousands(waiting), tone: "text-stop"},
		{name: "Held back now", value: "0"},
	}
	if held > 0 {
		list[2] = fact{name: "Held back now", value: thousands(held), beside: countWord(held, "target", "targets")}
	}
	if at > 0 {
		list[1].beside = "for " + domain.Count(at, "target", "targets")
	}
	if len(took) > 0 {
		slices.Sort(took)
		list = append(list, fact{name: "Took, median", value: thousands(int(took[len(took)/2])) + " ms"})
	}
	return list
}

// zone returns the time zone of all targets, nil if they have several.
func (p NotificationsProps) zone() *time.Location {
	zone := p.Targets[0].Zone
	for _, t := range p.Targets {
		if t.Zone.String() != zone.String() {
			return nil
		}
	}
	return zone
}

// told returns the names of the targets that are told when t fails.
func (p NotificationsProps) told(t TargetRow) (names []string) {
	failed := domain.Alert{Kind: domain.AlertTarget, Target: t.ID}
	for _, other := range p.Targets {
		if other.Enabled && other.Wants(failed) {
			names = append(names, other.Name)
		}
	}
	return names
}

// words is a text, some of it bold.
type words struct {
	text string
	bold bool
}

// describeRules says in one sentence what a target gets.
func describeRules(r domain.TargetRules) (list []words) {
	plain := func(text string) { list = append(list, words{text, false}) }
	bold := func(text string) { list = append(list, words{text, true}) }
	enumerate := func(names []string, add func(string)) {
		for i, name := range names {
			switch {
			case i == 0:
			case i == len(names)-1:
				plain(" and ")
			default:
				plain(", ")
			}
			add(name)
		}
	}
	kinds := slices.Concat(allOr("all events", domain.Map(r.Events, eventWord), len(TargetForm{}.eventTypes())),
		allOr("all that needs attention", domain.Map(r.Alerts, alertWord), len(domain.AlertKinds())))
	if len(kinds) == 0 {
		return []words{{"Nothing yet: no event and no alert is chosen.", false}}
	}
	kinds[0] = upper(kinds[0])
	enumerate(kinds, bold)
	plain(" of ")
	if names := r.Projects; names == nil {
		plain("all projects")
	} else {
		enumerate(firstNames(names), bold)
	}
	switch r.Digest {
	case domain.HourlyDigest:
		plain(", ")
		bold("once an hour")
		plain(", if anything did.")
	case domain.DailyDigest:
		plain(", ")
		bold("once a day")
		plain(" at " + r.DigestAt + ".")
	default:
		if len(r.Alerts) == 0 {
			plain(", each as it happens.")
		} else {
			plain(", each as it begins.")
		}
	}
	if q := r.Quiet; q != nil {
		text := " Quiet from " + q.From + " to " + q.To
		if len(q.Days) > 0 && len(q.Days) < 7 {
			text += " on nights of " + strings.Join(q.Days, ", ")
		}
		plain(text + "; what still stands then comes at " + q.To + ".")
	}
	if r.TimeZone != "" && (r.Quiet != nil || r.Digest == domain.DailyDigest) {
		plain(" (" + r.TimeZone + ")")
	}
	return list
}

// allOr are the names, or one for all of them.
func allOr(all string, names []string, of int) []string {
	if len(names) < of {
		return names
	}
	return []string{all}
}

// firstNames are the first of names, and how many more there are.
func firstNames(names []string) []string {
	first, rest := split(names, 3)
	shown := domain.Map(first, func(name string) string { return domain.Cut(name, 60) })
	if len(rest) > 0 {
		shown = append(shown, thousands(len(rest))+" more")
	}
	return shown
}

func eventWord(kind domain.EventType) string {
	return cmp.Or(kind.Kind().Plural, domain.Cut(string(kind), 60))
}

func alertWord(kind domain.AlertKind) string {
	switch {
	case kind == domain.AlertQuestion:
		return "questions"
	case !slices.Contains(domain.AlertKinds(), kind): // from a refused form
		return domain.Cut(string(kind), 60)
	}
	return kind.Word()
}

// state says how a target is doing.
func (t TargetRow) state() (Signal, string) {
	p := t.Progress
	switch {
	case !t.Enabled && p.Gone:
		return SignalCaution, "Switched off by its receiver (410)"
	case !t.Enabled:
		return SignalNone, "Off"
	case !p.FailingAt.IsZero():
		return SignalStop, "Failing"
	case p.SentAt.IsZero():
		return SignalNone, "Nothing sent yet"
	}
	return SignalClear, "Delivered"
}
