package views

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// logEntry is a line of the log: an event, or a folded run of them.
type logEntry struct {
	events []domain.PastEvent // newest first
	alike  bool               // many stories moved the same way, rather than one story
	quiet  time.Duration      // how long nothing had happened before it, if long
}

const (
	// runAtLeast is how many adjacent events make a folded run, runGap the longest time between two of them.
	runAtLeast, runGap = 3, 30 * time.Minute
	// quietAtLeast is how long nothing must happen for the log to say so.
	quietAtLeast = 4 * time.Hour
)

// logEntries folds runs of adjacent events of one story, or of many stories that moved the same way.
func logEntries(events []domain.PastEvent) []logEntry {
	var entries []logEntry
	for i := 0; i < len(events); {
		n, alike := runLength(events[i:])
		entry := logEntry{events: events[i : i+n], alike: alike}
		if i += n; i < len(events) {
			if quiet := eventTime(events[i-1].Event).Sub(eventTime(events[i].Event)); quiet >= quietAtLeast {
				entry.quiet = quiet
			}
		}
		entries = append(entries, entry)
	}
	return entries
}

// runLength returns how many of the first events make one line.
func runLength(events []domain.PastEvent) (n int, alike bool) {
	first := events[0].Details()
	if first.StoryID == "" {
		return 1, false
	}
	count := func(same func(domain.PastEvent, domain.EventDetails) bool) int {
		n := 1
		for n < len(events) && events[n].Project == events[0].Project && same(events[n], events[n].Details()) &&
			eventTime(events[n-1].Event).Sub(eventTime(events[n].Event)) <= runGap {
			n++
		}
		return n
	}
	n = count(func(_ domain.PastEvent, d domain.EventDetails) bool { return d.StoryID == first.StoryID })
	if n >= runAtLeast {
		return n, false
	}
	n = count(func(e domain.PastEvent, d domain.EventDetails) bool {
		return e.Type == domain.StageTransition && events[0].Type == e.Type &&
			d.FromStage == first.FromStage && d.ToStage == first.ToStage
	})
	if n >= runAtLeast {
		return n, true
	}
	return 1, false
}

// describe is a run in words: the way from its first stage to its last one, and its troubles.
func (l logEntry) describe(ctx context.Context) string {
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
	if project := l.events[0].Project; from != "" {
		troubles = slices.Insert(troubles, 0, stageTitle(ctx, project, from)+" → "+stageTitle(ctx, project, to))
	}
	return strings.Join(troubles, ", ")
}

// by is who caused all events of a run, "" unless that is known to be one person or agent.
func (l logEntry) by() string {
	for _, e := range l.events {
		if e.By != l.events[0].By {
			return ""
		}
	}
	return l.events[0].By
}

// what says what happened, and whether a story went back.
func what(ctx context.Context, e domain.Event, d domain.EventDetails) string {
	text := upper(domain.StageWordsOf(ctx).Describe(e, d))
	from, isNumber := domain.StageNumber(d.FromStage)
	to, isToo := domain.StageNumber(d.ToStage)
	if e.Type == domain.StageTransition && isNumber && isToo && to < from {
		text += " (back)"
	}
	return text
}

// lastLine returns the last line of a reason that is not blank, and how many lines it has.
func lastLine(reason string) (last string, lines int) {
	all := strings.Split(strings.TrimSpace(reason), "\n")
	return strings.TrimSpace(all[len(all)-1]), len(all)
}
