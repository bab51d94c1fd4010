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

// EventFilter selects events; an empty field selects all.
type EventFilter struct {
	Project  string
	Type     domain.EventType
	Text     string
	From, To int64 // Unix milliseconds, To exclusive; 0 for no limit
}

func (f EventFilter) Query() domain.EventQuery {
	return domain.EventQuery{
		ByTime: true, Project: f.Project, Type: f.Type, Text: f.Text, From: f.From, To: f.To,
	}
}

// url returns the address of the page with this filter, and further parameters.
func (f EventFilter) url(pairs ...string) string {
	return withQuery(EventsURL, append([]string{
		"project", f.Project, "type", string(f.Type), "q", f.Text, "from", id(f.From), "to", id(f.To),
	}, pairs...)...)
}

func (f EventFilter) between(from, to time.Time) EventFilter {
	f.From, f.To = from.UnixMilli(), to.UnixMilli()
	return f
}

// EventPlace is where an event stands in the order of time.
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

// ParseEventPlace reads what String writes.
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

// EventsProps are the data of the Events page.
type EventsProps struct {
	Filter EventFilter
	Events []domain.Event // newest first
	// Since is the place of the oldest event on the page as it was loaded: refreshing never drops events that are being
	// read.
	Since EventPlace
	// Cut says that there are too many new events to show: some between these and the older ones are missing.
	Cut bool
	// Failure is why the events could not be searched, "" if they were.
	Failure string
	// Older is the place before which there are more events, if there are any.
	Older EventPlace
	// Before is the place before which this page's events are, zero for the newest page. Older pages do not change.
	Before EventPlace
	// Day is the last day of the list that this one is appended to, as from dayOf.
	Day  string
	Told EventsTold
	Now  time.Time
}

func (p EventsProps) Title() string {
	title := "Events"
	if p.Filter.Project != "" {
		title += " of " + domain.Cut(p.Filter.Project, 40)
	}
	return TitleWith(title, p.Filter.Text)
}

// KeepSince drops the events before p.Since. It reports whether the others may go on between it and the last one.
func (p *EventsProps) KeepSince() bool {
	compare := func(e domain.Event) int {
		return cmp.Or(cmp.Compare(e.At.UnixMilli(), p.Since.At), cmp.Compare(e.ID, p.Since.ID))
	}
	if i := slices.IndexFunc(p.Events, func(e domain.Event) bool { return compare(e) < 0 }); i >= 0 {
		p.Events = p.Events[:i]
		return false
	}
	return len(p.Events) > 0 && compare(p.Events[len(p.Events)-1]) > 0
}

// ToldHours is how many hours have a bar above the list.
const ToldHours = 48

// EventsTold counts the events of the last ToldHours, and those of a window.
type EventsTold struct {
	Hours    []hourOfEvents // oldest first
	Events   int
	More     bool // there are others in the window
	Projects int
	Kinds    []kindCount
}

type hourOfEvents struct {
	start           time.Time
	events, trouble int
}

type kindCount struct {
	domain.EventKind
	n int
}

func (t *EventsTold) CountHours(events []domain.Event, now time.Time) {
	first := now.Truncate(time.Hour).Add(-(ToldHours - 1) * time.Hour)
	t.Hours = make([]hourOfEvents, ToldHours)
	for i := range t.Hours {
		t.Hours[i].start = first.Add(time.Duration(i) * time.Hour)
	}
	for _, e := range events {
		i := int(e.At.Sub(first) / time.Hour)
		if e.At.Before(first) || i >= ToldHours {
			continue
		}
		t.Hours[i].events++
		if e.Type.Kind().Signal != domain.SignalNone {
			t.Hours[i].trouble++
		}
	}
}

func (t *EventsTold) CountWindow(events []domain.Event, more bool) {
	projects, kinds := map[string]bool{}, map[domain.EventType]int{}
	for _, e := range events {
		projects[e.Project] = true
		kinds[e.Type]++
	}
	t.Events, t.More, t.Projects = len(events), more, len(projects)
	for _, kind := range domain.EventKinds {
		if n := kinds[kind.Type]; n > 0 && kind.Choice != "" {
			t.Kinds = append(t.Kinds, kindCount{kind, n})
		}
	}
}

// highest is the greatest number of events in an hour, at least 1.
func (t EventsTold) highest() int {
	most := 1
	for _, h := range t.Hours {
		most = max(most, h.events)
	}
	return most
}

func (h hourOfEvents) in(f EventFilter) bool {
	at := h.start.UnixMilli()
	return (f.From > 0 || f.To > 0) && at+time.Hour.Milliseconds() > f.From && (f.To == 0 || at < f.To)
}

// preset is a window of time that readers often want. static/events.js changes it to their own days.
type preset struct {
	name, key string
	filter    EventFilter
}

// presets returns the windows by the clock of now.
func (f EventFilter) presets(now time.Time) []preset {
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	at := func(days, hour int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()+days, hour, 0, 0, 0, now.Location())
	}
	all, today := f, f
	all.From, all.To = 0, 0
	today.From, today.To = day.UnixMilli(), 0
	return []preset{
		{"All", "all", all},
		{"Today", "today", today},
		{"Last night", "night", f.between(at(-1, 22), at(0, 6))},
		{"Since I was last here", "last", today},
	}
}

// logEntry is a line of the log: an event, or a run of them that is folded.
type logEntry struct {
	events []domain.Event // newest first
	alike  bool           // many stories moved the same way, rather than one story
	quiet  time.Duration  // how long nothing had happened before it, if that was long
}

const (
	// runAtLeast is how many adjacent events are folded at least, runGap the longest time between two of them.
	runAtLeast, runGap = 3, 30 * time.Minute
	// quietAtLeast is how long nothing happens before the log says so.
	quietAtLeast = 4 * time.Hour
)

// logEntries folds runs of adjacent events of one story, or of many stories that moved the same way.
func logEntries(events []domain.Event) []logEntry {
	var entries []logEntry
	for i := 0; i < len(events); {
		n, alike := runLength(events[i:])
		entry := logEntry{events: events[i : i+n], alike: alike}
		if i += n; i < len(events) {
			if quiet := eventTime(events[i-1]).Sub(eventTime(events[i])); quiet >= quietAtLeast {
				entry.quiet = quiet
			}
		}
		entries = append(entries, entry)
	}
	return entries
}

// runLength returns how many of the first events make one line.
func runLength(events []domain.Event) (n int, alike bool) {
	first := events[0].Details()
	if first.StoryID == "" {
		return 1, false
	}
	count := func(same func(domain.Event, domain.EventDetails) bool) int {
		n := 1
		for n < len(events) && events[n].Project == events[0].Project && same(events[n], events[n].Details()) &&
			eventTime(events[n-1]).Sub(eventTime(events[n])) <= runGap {
			n++
		}
		return n
	}
	n = count(func(_ domain.Event, d domain.EventDetails) bool { return d.StoryID == first.StoryID })
	if n >= runAtLeast {
		return n, false
	}
	n = count(func(e domain.Event, d domain.EventDetails) bool {
		return e.Type == domain.StageTransition && events[0].Type == e.Type &&
			d.FromStage == first.FromStage && d.ToStage == first.ToStage
	})
	if n >= runAtLeast {
		return n, true
	}
	return 1, false
}

// says is a run in words: the way from its first stage to its last one, and its troubles.
func (l logEntry) says() string {
	var from, to string
	var troubles []string
	for _, e := range slices.Backward(l.events) {
		kind, d := e.Type.Kind(), e.Details()
		if e.Type == domain.StageTransition {
			from, to = cmp.Or(from, d.FromStage), d.ToStage
		} else if kind.Choice != "" && !slices.Contains(troubles, kind.Choice) {
			troubles = append(troubles, kind.Choice)
		}
	}
	if from != "" {
		troubles = slices.Insert(troubles, 0, domain.StageTitle(from)+" → "+domain.StageTitle(to))
	}
	return strings.Join(troubles, ", ")
}

// lastLine returns the last line of a reason that is not blank, and how many lines it has.
func lastLine(reason string) (last string, lines int) {
	all := strings.Split(strings.TrimSpace(reason), "\n")
	return strings.TrimSpace(all[len(all)-1]), len(all)
}

// isFinish reports whether a story came into a stage whose word says that it is done.
func isFinish(e domain.Event, d domain.EventDetails) bool {
	return e.Type == domain.StageTransition && domain.OpenStages([]domain.Stage{{Name: d.ToStage}}) == 0
}
