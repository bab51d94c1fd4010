package views

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// eventChoices are the types to choose from, plain moves last.
func eventChoices() []domain.EventKind {
	choices := []domain.EventKind{{Type: domain.Finished, Choice: "finished", Signal: domain.SignalClear}}
	for _, isQuiet := range []bool{false, true} {
		for _, kind := range domain.EventKinds {
			if kind.Choice != "" && (kind.Signal == domain.SignalNone) == isQuiet {
				choices = append(choices, kind)
			}
		}
	}
	return choices
}

// EventFilter selects events; an empty field selects all.
type EventFilter struct {
	Project  string
	Type     domain.EventType // or domain.Finished
	Text     string
	From, To int64 // Unix milliseconds, To exclusive; 0 for no limit
}

func (f EventFilter) Query() domain.EventQuery {
	q := domain.EventQuery{ByTime: true, Project: f.Project, Type: f.Type, Text: f.Text, From: f.From, To: f.To}
	if f.Type == domain.Finished {
		q.Type, q.Finished = domain.StageTransition, true
	}
	return q
}

// words say which window the list below shows.
func (f EventFilter) words() string {
	if f.Type == "" && f.Text == "" {
		return ""
	}
	words := "Shown: all"
	if f.Type != "" {
		words = "Shown: " + cmp.Or(f.Type.Kind().Choice, string(f.Type))
	}
	if f.Text != "" {
		words += " with “" + f.Text + "”"
	}
	return words + "."
}

// url returns the address of the page with this filter, and further parameters.
func (f EventFilter) url(pairs ...string) string {
	return withQuery(EventsURL, append([]string{
		"project", f.Project, "type", string(f.Type), "q", f.Text, "from", id(f.From), "to", id(f.To),
	}, pairs...)...)
}

// EventPlace is an event's position in the order of time.
type EventPlace struct {
	At int64 // Unix milliseconds
	ID int64
}

func PlaceOf(e domain.Event) EventPlace { return EventPlace{At: e.At.UnixMilli(), ID: e.ID} }

func (p EventPlace) String() string {
	if p.ID == 0 {
		return ""
	}
	return fmt.Sprintf("%d-%d", p.At, p.ID)
}

func ParseEventPlace(text string) (p EventPlace, err error) {
	at, id, _ := strings.Cut(text, "-")
	if p.At, err = strconv.ParseInt(at, 10, 64); err == nil {
		p.ID, err = strconv.ParseInt(id, 10, 64)
	}
	if err == nil && (p.At < 0 || p.ID < 1) {
		err = strconv.ErrRange
	}
	return p, err
}

type EventsProps struct {
	Filter EventFilter
	Events []domain.PastEvent // newest first
	// Since is the place of the oldest event on the page as it was loaded: refreshing never drops events that are being
	// read.
	Since EventPlace
	// Cut says that there are too many new events to show: some are missing between these and the older ones.
	Cut bool
	// Failure is why the events could not be searched, "" if they were.
	Failure string
	// Older is the place before which there are more events, if any.
	Older EventPlace
	// Before is the place that this page's events precede, zero for the newest page. Older pages do not change.
	Before EventPlace
	// Day is the last day of the list that this one is appended to, as from dayOf.
	Day  string
	Told EventCounts
	// Agents are the labels of agents.
	Agents map[string]bool
	Now    time.Time
}

func (p EventsProps) Title() string {
	title := "Events"
	if p.Filter.Project != "" {
		title += " of " + domain.Cut(p.Filter.Project, 40)
	}
	return TitleWith(title, p.Filter.Text)
}

// KeepSince drops the events before p.Since. It reports whether there may be others between it and the last one.
func (p *EventsProps) KeepSince() bool {
	compare := func(e domain.PastEvent) int {
		return cmp.Or(cmp.Compare(e.At.UnixMilli(), p.Since.At), cmp.Compare(e.ID, p.Since.ID))
	}
	if i := slices.IndexFunc(p.Events, func(e domain.PastEvent) bool { return compare(e) < 0 }); i >= 0 {
		p.Events = p.Events[:i]
		return false
	}
	return len(p.Events) > 0 && compare(p.Events[len(p.Events)-1]) > 0
}

// preset is a window of time that readers often want. static/events.js changes it to their own days.
type preset struct {
	name, key string
	from, to  int64 // Unix milliseconds, 0 for no limit
}

// presets returns the windows of time relative to now.
func presets(now time.Time) []preset {
	day := func(days, hour int) int64 {
		return time.Date(now.Year(), now.Month(), now.Day()+days, hour, 0, 0, 0, now.Location()).UnixMilli()
	}
	return []preset{
		{"All", "all", 0, 0},
		{"Today", "today", day(0, 0), 0},
		{"Last night", "night", day(-1, 22), day(0, 6)},
		{"Since I was last here", "last", day(0, 0), 0},
	}
}
