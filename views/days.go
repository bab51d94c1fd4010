package views

import (
	"time"

	"switchyard/internal/domain"
)

// eventDay is the events of one day, in the gateway's time zone.
type eventDay struct {
	key    string // as from dayOf
	start  time.Time
	events []domain.Event
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
	Events []domain.Event
	After  string // the last day of the list above this one, as from dayOf
	Now    time.Time
	Style  eventStyle
}

// title returns the heading of a day, "" for none: a short list does not need one for today.
func (l eventList) title(d eventDay) string {
	title := d.title(l.Now)
	if d.key == l.After || title == "Today" && l.Style != eventsPage {
		return ""
	}
	return title
}

// dayOf returns the day of an event: 2026-11-21.
func dayOf(e domain.Event) string { return eventTime(e).Format(time.DateOnly) }

// byDay splits events into runs of the same day, in their order. With feeds that were behind, a day may appear twice.
func byDay(events []domain.Event) []eventDay {
	var days []eventDay
	for _, e := range events {
		key := dayOf(e)
		if len(days) == 0 || days[len(days)-1].key != key {
			days = append(days, eventDay{key: key, start: eventTime(e)})
		}
		last := &days[len(days)-1]
		last.events = append(last.events, e)
	}
	return days
}

func (d eventDay) title(now time.Time) string {
	switch d.key {
	case now.Format(time.DateOnly):
		return "Today"
	case now.AddDate(0, 0, -1).Format(time.DateOnly):
		return "Yesterday"
	}
	return d.start.Format("Monday 2 January 2006")
}
