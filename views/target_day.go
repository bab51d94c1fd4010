package views

import (
	"math"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// mark is something on the axis of a day, in percent of it.
type mark struct {
	at, width  float64
	many, lost bool
	words      string
}

// dayAt is the position of a time of day on the axis, in percent.
func dayAt(t time.Time) float64 { return float64(t.Hour()*60+t.Minute()) * 100 / (24 * 60) }

// quietHours returns the quiet parts of the day of now, by the target's clock.
func (t TargetRow) quietHours(now time.Time) (list []mark) {
	const minutes, width = 15, 100 * 15.0 / (24 * 60)
	y, m, d := now.In(t.Zone).Date()
	for minute := 0; minute < 24*60; minute += minutes {
		// A time of day that the clock skips today is on the axis anyway.
		if !t.Rules.IsQuiet(time.Date(y, m, d, 0, minute, 0, 0, time.UTC)) {
			continue
		}
		at := float64(minute) * 100 / (24 * 60)
		if n := len(list); n > 0 && list[n-1].at+list[n-1].width > at-0.01 {
			list[n-1].width += width
		} else {
			list = append(list, mark{at: at, width: width})
		}
	}
	return list
}

// marksWithin is how long a part of the day is in which several messages share a mark.
const marksWithin = 10 * time.Minute

// marks are today's messages, by the target's clock: one mark each, but those within the same ten minutes share one.
// Messages that are not at hand are marked by the hour.
func (t TargetRow) marks(now time.Time) []mark {
	var parts []domain.DeliveryHour
	kept := domain.StartOfDay(now.In(t.Zone))
	if n := len(t.Recent); n >= domain.MaxDeliveries {
		kept = t.Recent[n-1].At
	} else if n == 0 {
		kept = now.Add(time.Hour)
	}
	for _, h := range t.Hours {
		if !h.Hour.Add(time.Hour).After(kept) {
			parts = append(parts, domain.DeliveryHour{Hour: h.Hour.Add(30 * time.Minute), Sent: h.Sent, Failed: h.Failed})
		}
	}
	for _, d := range slices.Backward(t.Recent) {
		if d.At.Before(kept) {
			continue
		}
		begins := d.At.Truncate(marksWithin)
		if n := len(parts); n == 0 || !parts[n-1].Hour.Equal(begins) {
			parts = append(parts, domain.DeliveryHour{Hour: begins})
		}
		if part := &parts[len(parts)-1]; d.Error == "" {
			part.Sent++
		} else {
			part.Failed++
		}
	}
	return t.marksOf(parts, now)
}

// marksOf are today's marks at the beginnings of these parts of it.
func (t TargetRow) marksOf(parts []domain.DeliveryHour, now time.Time) (list []mark) {
	day := domain.StartOfDay(now.In(t.Zone))
	for _, h := range parts {
		begins := h.Hour.In(t.Zone)
		if begins.Before(day) {
			continue
		}
		at := min(dayAt(now.In(t.Zone)), dayAt(begins))
		hour := begins.Format("15:04") + ": "
		if h.Sent > 0 {
			many := h.Sent > 1 || t.Rules.Digest != domain.NoDigest
			list = append(list, mark{at: at, many: many, words: hour + thousands(h.Sent) + " sent"})
		}
		if h.Failed > 0 {
			list = append(list, mark{at: at, lost: true, words: hour + thousands(h.Failed) + " refused"})
		}
	}
	return list
}

func (t TargetRow) describe(now time.Time) string {
	list := domain.Map(t.marksOf(t.Hours, now), func(m mark) string { return m.words })
	if len(list) == 0 {
		list = append(list, "nothing sent")
	}
	if t.Waiting > 0 {
		list = append(list, thousands(t.Waiting)+" wait")
	}
	return "Today: " + strings.Join(list, ", ")
}

// axisHours are the hours named on the day's axis: none where now is written, even on a narrow axis.
func axisHours(zone *time.Location, now time.Time) (list []int) {
	for hour := 0; hour <= 24; hour += 3 {
		at := float64(hour) * 100 / 24
		if zone == nil || math.Abs(at-dayAt(now.In(zone))) > 12 {
			list = append(list, hour)
		}
	}
	return list
}

// anchorAt keeps a text on the axis from sticking out.
func anchorAt(at float64) string {
	switch {
	case at < 5:
		return "start"
	case at > 95:
		return "end"
	}
	return "middle"
}
