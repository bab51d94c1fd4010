package views

import (
	"cmp"
	"slices"
	"time"

	"switchyard/internal/domain"
)

// CountedHours is how many hours have a bar above the list.
const CountedHours = 48

// EventCounts counts the events of the last CountedHours, and those of a window.
type EventCounts struct {
	Hours    []hourCounts // oldest first
	Events   int
	More     bool           // the window has others
	Projects []projectCount // the most trouble first
	Kinds    []kindCount
}

type hourCounts struct {
	start           time.Time
	events, trouble int
	worst           domain.Signal
}

// projectCount counts a project's events. Moves that finish a story count only as finished.
type projectCount struct {
	name                     string
	moves, finished, trouble int
	worst                    domain.Signal
}

type kindCount struct {
	domain.EventKind
	n int
}

func (t *EventCounts) CountHours(events []domain.Event, now time.Time) {
	first := CountFrom(now)
	t.Hours = make([]hourCounts, CountedHours)
	for i := range t.Hours {
		t.Hours[i].start = first.Add(time.Duration(i) * time.Hour)
	}
	for _, e := range events {
		i := int(e.At.Sub(first) / time.Hour)
		if e.At.Before(first) || i >= CountedHours {
			continue
		}
		t.Hours[i].events++
		if s := e.Type.Kind().Signal; s != domain.SignalNone {
			t.Hours[i].trouble++
			t.Hours[i].worst = worse(t.Hours[i].worst, s)
		}
	}
}

func worse(a, b domain.Signal) domain.Signal {
	if a == domain.SignalStop {
		return a
	}
	return b
}

func CountFrom(now time.Time) time.Time {
	hour := now.Add(-time.Duration(now.Minute()) * time.Minute).Truncate(time.Minute)
	return hour.Add(-(CountedHours - 1) * time.Hour)
}

func (t *EventCounts) CountWindow(events []domain.Event, more bool, finishes func(domain.Event) bool) {
	projects, kinds := map[string]*projectCount{}, map[domain.EventType]int{}
	for _, e := range events {
		p := projects[e.Project]
		if p == nil {
			p = &projectCount{name: e.Project}
			projects[e.Project] = p
		}
		kinds[e.Type]++
		switch s := e.Type.Kind().Signal; {
		case s != domain.SignalNone:
			p.trouble++
			p.worst = worse(p.worst, s)
		case finishes(e):
			p.finished++
			kinds[domain.Finished]++
		case e.Type == domain.StageTransition:
			p.moves++
		}
	}
	t.Events, t.More = len(events), more
	for _, p := range projects {
		t.Projects = append(t.Projects, *p)
	}
	slices.SortFunc(t.Projects, func(a, b projectCount) int {
		return cmp.Or(b.trouble-a.trouble, b.moves+b.finished-a.moves-a.finished, cmp.Compare(a.name, b.name))
	})
	for _, kind := range eventChoices() {
		if n := kinds[kind.Type]; n > 0 {
			t.Kinds = append(t.Kinds, kindCount{kind, n})
		}
	}
}

func (t EventCounts) highest() int {
	most := 1
	for _, h := range t.Hours {
		most = max(most, h.events)
	}
	return most
}

// describeCounts says what was counted, to go between the words for the window and the name of the only project.
func (p EventsProps) describeCounts() string {
	f, text := p.Filter, ": "
	if f.From > 0 {
		to := p.Now
		if f.To > 0 {
			to = time.UnixMilli(f.To)
		}
		text = ", " + longAge(max(0, to.Sub(time.UnixMilli(f.From)))) + ": "
	}
	if p.Told.More {
		text += "over "
	}
	text += domain.Count(p.Told.Events, "event", "events") + " in "
	if f.Project == "" {
		text += domain.Count(len(p.Told.Projects), "project", "projects")
	}
	return text
}

// mark is the label below bar i: the time at the first bar and every 6 h, with the day at midnight, if there is room.
// static/events.js changes it to the reader's time zone.
func (t EventCounts) mark(i int) string {
	start := t.Hours[i].start
	switch hasRoom := i > 4 && i < CountedHours-6; {
	case i == 0 || hasRoom && start.Hour() == 0:
		return start.Format("Mon 15:04")
	case hasRoom && start.Hour()%6 == 0:
		return start.Format("15:04")
	}
	return ""
}

func (h hourCounts) url(f EventFilter) string {
	f.From, f.To = h.start.UnixMilli(), h.start.Add(time.Hour).UnixMilli()
	return f.url()
}

func (h hourCounts) in(f EventFilter) bool {
	at := h.start.UnixMilli()
	return (f.From > 0 || f.To > 0) && at+time.Hour.Milliseconds() > f.From && (f.To == 0 || at < f.To)
}
