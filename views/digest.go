package views

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// DigestProps are the data of a digest's page.
type DigestProps struct {
	Digest        domain.DigestRecord
	Zone          *time.Location       // its target's
	Before        *domain.DigestRecord // the one before, nil if there is none
	Events        []domain.PastEvent   // oldest first
	More          bool                 // there are more
	Open          []domain.Alert       // alerts of it that are still open
	InlineActions InlineActions        // for the first of these
	Told          *domain.Delivery     // the last attempt to send it, nil if no longer known
	// Usual is the median number of stories finished in the last Others digests, unknown if Others is 0.
	Usual, Others int
	Cost          string // what model calls cost meanwhile, "" for nothing
	Now           time.Time
}

func (p DigestProps) Title() string {
	return p.span() + " to " + p.Digest.At.In(p.Zone).Format("Monday 15:04")
}

func (p DigestProps) span() string { return cmp.Or(p.Digest.Span, "What happened") }

func (p DigestProps) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", p.Title(), p.Digest.Text)
	if p.Cost != "" {
		b.WriteString(p.Cost + "\n")
	}
	for _, a := range p.Open {
		fmt.Fprintf(&b, "still stands: %s\n", strings.Join(strings.Fields(a.Text()), " "))
	}
	for _, a := range p.over() {
		fmt.Fprintf(&b, "over: %s\n", a.Text)
	}
	for _, day := range p.projects() {
		for _, e := range day.finished {
			d := e.Details()
			line := fmt.Sprintf("finished: %s · %s %s %s", day.name, d.StoryID, d.StoryName, author(e))
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return b.String()
}

// hours are the full hours on the digest's axis, at most eight or so.
func (p DigestProps) hours() (list []time.Time) {
	from := p.from()
	step := max(1, int(p.Digest.At.Sub(from)/(8*time.Hour)))
	first := time.Date(from.Year(), from.Month(), from.Day(), from.Hour(), 0, 0, 0, p.Zone)
	for at := first; !at.After(p.Digest.At); at = at.Add(time.Duration(step) * time.Hour) {
		if !at.Before(from) {
			list = append(list, at)
		}
	}
	return list
}

func (p DigestProps) newestFirst() []domain.PastEvent {
	list := slices.Clone(p.Events)
	slices.Reverse(list)
	return list
}

// over are the alerts of the digest that are no longer open.
func (p DigestProps) over() []domain.DigestAlert {
	return slices.DeleteFunc(slices.Clone(p.Digest.Alerts), func(a domain.DigestAlert) bool {
		return slices.ContainsFunc(p.Open, func(open domain.Alert) bool { return open.Key() == a.Key })
	})
}

// from is when the digest's time begins, or its first event if that is earlier.
func (p DigestProps) from() time.Time {
	from := p.Digest.Began(p.Zone)
	if len(p.Events) > 0 && eventTime(p.Events[0].Event).Before(from) {
		from = eventTime(p.Events[0].Event).In(p.Zone)
	}
	return from
}

func (p DigestProps) sentence() (list []words) {
	usual := ""
	if p.Others > 0 {
		usual = "usually " + thousands(p.Usual)
	}
	for i, part := range strings.Split(p.Digest.Text, ", ") {
		if i > 0 {
			list = append(list, words{", ", false})
		}
		list = append(list, words{part, true})
		if usual != "" && strings.HasSuffix(part, " finished") {
			list, usual = append(list, words{" (" + usual + ")", false}), ""
		}
	}
	if usual != "" {
		list = append(list, words{"; finished are " + usual, false})
	}
	return list
}

type projectDay struct {
	name     string
	stands   []domain.Alert // of those that began in the digest's time
	events   []domain.PastEvent
	finished []domain.PastEvent
}

func (p DigestProps) projects() (list []projectDay) {
	at := map[string]int{}
	of := func(name string) *projectDay {
		i, known := at[name]
		if !known {
			i = len(list)
			at[name], list = i, append(list, projectDay{name: name})
		}
		return &list[i]
	}
	for _, e := range p.Events {
		day := of(e.Project)
		day.events = append(day.events, e)
		if e.Finished {
			day.finished = append(day.finished, e)
		}
	}
	from := p.from()
	for _, a := range p.Open {
		if a.Project != "" && !a.Since.Before(from) && !a.Since.After(p.Digest.At) {
			day := of(a.Project)
			day.stands = append(day.stands, a)
		}
	}
	slices.SortFunc(list, func(a, b projectDay) int { return strings.Compare(a.name, b.name) })
	return list
}

// at is the position of a time on the digest's axis, in percent.
func (p DigestProps) at(t time.Time) float64 {
	from := p.from()
	whole := max(time.Minute, p.Digest.At.Sub(from))
	return 100 * min(1, max(0, float64(t.Sub(from))/float64(whole)))
}

// describe is a project's line in words.
func (d projectDay) describe() string {
	list := []string{domain.Count(len(d.events), "event", "events")}
	if n := len(d.finished); n > 0 {
		list = append(list, thousands(n)+" finished")
	}
	for _, a := range d.stands {
		list = append(list, a.Kind.Word()+" since "+a.Since.Format("15:04"))
	}
	return strings.Join(list, ", ")
}

func (p DigestProps) finished() int { return howMany(p.Events, isFinish) }
