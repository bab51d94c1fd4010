package views

import (
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// DigestProps are the data of a digest's page.
type DigestProps struct {
	Digest domain.DigestRecord
	Events []domain.Event // oldest first
	More   bool           // there are others
	Open   []domain.Alert // of its alerts, those that still stand
	Now    time.Time
}

// Title is the page's heading.
func (p DigestProps) Title() string {
	return "What happened until " + p.Digest.At.Format("Monday 15:04")
}

func (p DigestProps) newestFirst() []domain.Event {
	list := slices.Clone(p.Events)
	slices.Reverse(list)
	return list
}

// over are the alerts of the digest that no longer stand.
func (p DigestProps) over() (list []domain.DigestAlert) {
	for _, a := range p.Digest.Alerts {
		if !slices.ContainsFunc(p.Open, func(open domain.Alert) bool { return open.Key() == a.Key }) {
			list = append(list, a)
		}
	}
	return list
}

// from is when the digest's time begins: an hour or a day before it, or with its first event.
func (p DigestProps) from() time.Time {
	from := p.Digest.At.Add(-time.Hour)
	if p.Digest.Rules.Digest == domain.DailyDigest {
		from = p.Digest.At.AddDate(0, 0, -1)
	}
	if len(p.Events) > 0 && eventTime(p.Events[0]).Before(from) {
		from = eventTime(p.Events[0])
	}
	return from
}

// projectDay is what happened in a project.
type projectDay struct {
	name     string
	events   []domain.Event
	finished []domain.Event
}

func (p DigestProps) projects() (list []projectDay) {
	at := map[string]int{}
	for _, e := range p.Events {
		i, known := at[e.Project]
		if !known {
			i = len(list)
			at[e.Project], list = i, append(list, projectDay{name: e.Project})
		}
		list[i].events = append(list[i].events, e)
		if isFinish(e, e.Details()) {
			list[i].finished = append(list[i].finished, e)
		}
	}
	slices.SortFunc(list, func(a, b projectDay) int { return strings.Compare(a.name, b.name) })
	return list
}

// at is the place of an event on the digest's axis, in percent.
func (p DigestProps) at(e domain.Event) float64 {
	from := p.from()
	whole := max(time.Minute, p.Digest.At.Sub(from))
	return 100 * min(1, max(0, float64(eventTime(e).Sub(from))/float64(whole)))
}
