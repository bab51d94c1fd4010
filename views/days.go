package views

import (
	"time"

	"switchyard/internal/domain"
)

// dayGroup is what happened on one day.
type dayGroup[T any] struct {
	key   string // as from dayOf
	start time.Time
	list  []T
}

// byDay splits what happened into runs of the same day, keeping the order. If feeds were behind, a day may appear
// twice.
func byDay[T any](list []T, at func(T) time.Time) (days []dayGroup[T]) {
	for _, one := range list {
		start := at(one)
		key := start.Format(time.DateOnly)
		if len(days) == 0 || days[len(days)-1].key != key {
			days = append(days, dayGroup[T]{key: key, start: start})
		}
		last := &days[len(days)-1]
		last.list = append(last.list, one)
	}
	return days
}

// eventStyle is where events are listed.
type eventStyle string

const (
	eventsFeed      eventStyle = "feed" // of all projects, beside other content
	eventsOfProject eventStyle = ""
	eventsPage      eventStyle = "of-many" // the Events page
)

func (s eventStyle) heading() string {
	if s == eventsPage {
		return "h2"
	}
	return "h3"
}

// eventList is a list of events, newest first.
type eventList struct {
	Events []domain.PastEvent
	After  string          // the last day of the list above this one, as from dayOf
	Cut    bool            // the last day has older events
	Agents map[string]bool // their labels
	Now    time.Time
	Style  eventStyle
}

// at returns when an event happened, in the time zone of the list.
func (l eventList) at(e domain.Event) time.Time { return eventTime(e).In(l.Now.Location()) }

// title returns the heading of a day, "" for none: a short list does not need one for today.
func (l eventList) title(d dayGroup[domain.PastEvent]) (name, date string) {
	name, date = dayTitle(d.start, l.Now)
	if d.key == l.After || name == "Today" && l.Style != eventsPage {
		return "", ""
	}
	return name, date
}

// dayOf returns the day of an event in a time zone: 2026-11-21.
func dayOf(e domain.Event, zone *time.Location) string {
	return eventTime(e).In(zone).Format(time.DateOnly)
}

// dayTitle names a day: "Today", "Monday 23 November". static/times.js does the same in the reader's time zone.
func dayTitle(day, now time.Time) (name, date string) {
	date = day.Format("2 January")
	if day.Year() != now.Year() {
		date += day.Format(" 2006")
	}
	switch day.Format(time.DateOnly) {
	case now.Format(time.DateOnly):
		return "Today", day.Format("Monday ") + date
	case now.AddDate(0, 0, -1).Format(time.DateOnly):
		return "Yesterday", day.Format("Monday ") + date
	}
	return day.Format("Monday"), date
}

func isFinish(e domain.PastEvent) bool { return e.Finished }

// eventTotals are the numbers of a day's events; cut means that it has older ones.
func eventTotals(events []domain.PastEvent, cut bool) string {
	if cut {
		return "the newest " + thousands(len(events))
	}
	text := domain.Count(len(events), "event", "events")
	if n := howMany(events, isFinish); n > 0 {
		text += ", " + thousands(n) + " finished"
	}
	return text
}
